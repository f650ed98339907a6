# SPDX-License-Identifier: Apache-2.0
# What is installed, how others find it (pkg-config, find_package(duet)), and Debian packages of it:
# `cpack -G DEB` in the build makes one for each component. Wherever it is put, it finds the rest of
# itself, as places are relative.

include(CMakePackageConfigHelpers)
set(data ${CMAKE_INSTALL_DATADIR}/duet)
set(libraries ${CMAKE_INSTALL_LIBDIR})

install(TARGETS duet_command RUNTIME COMPONENT command)
install(TARGETS duet_shared duet_quark EXPORT duet
  LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(DIRECTORY platforms DESTINATION ${data} COMPONENT library
  FILES_MATCHING PATTERN "*.json" PATTERN "*.csv" PATTERN "*.xml")
install(DIRECTORY core/include/duet TYPE INCLUDE COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.f90")

install(FILES quark/quark.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/duet/quark
  COMPONENT development)

# Manual pages, made of what the command says, and completion in bash.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND AND NOT DUET_SANITIZE)
  set(manual ${PROJECT_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${manual}/duet.1
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/manual $<TARGET_FILE:duet_command>
      ${manual}
    DEPENDS duet_command scripts/manual
    COMMENT "Writing manual pages" VERBATIM)
  add_custom_target(duet_manual ALL DEPENDS ${manual}/duet.1)
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
endif()
install(FILES cli/completion.bash RENAME duet COMPONENT command
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

# find_package(duet) gives the target duet::duet, and more by components.
set_target_properties(duet_shared PROPERTIES EXPORT_NAME duet)
set_target_properties(duet_quark PROPERTIES EXPORT_NAME quark)
install(EXPORT duet NAMESPACE duet:: DESTINATION ${libraries}/cmake/duet
  FILE duet-targets.cmake COMPONENT development)
configure_package_config_file(cmake/duet-config.cmake.in ${PROJECT_BINARY_DIR}/duet-config.cmake
  INSTALL_DESTINATION ${libraries}/cmake/duet NO_CHECK_REQUIRED_COMPONENTS_MACRO
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/duet-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/duet-config-version.cmake ${PROJECT_BINARY_DIR}/duet-config.cmake
  DESTINATION ${libraries}/cmake/duet COMPONENT development)

# pkg-config. Relative: right also after cmake --install --prefix.
file(RELATIVE_PATH DUET_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" DUET_PC_PREFIX ${DUET_PC_PREFIX})
foreach(directory IN ITEMS INCLUDEDIR LIBDIR DATADIR)
  file(RELATIVE_PATH DUET_PC_${directory}
    ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_${directory}})
endforeach()
configure_file(cmake/duet.pc.in duet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/duet.pc
  DESTINATION ${libraries}/pkgconfig COMPONENT development)

# Debian packages: libduet0 (with the platforms, and the module that simulates), libduet-dev, duet.
# What they depend on is read from the programs and libraries.
set(library libduet${PROJECT_VERSION_MAJOR})
set(CPACK_PACKAGE_NAME duet)
set(CPACK_PACKAGE_CONTACT "The authors of duet")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_COMPONENTS_ALL command library development)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME duet)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS libomp5) # that duet record runs programs with
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian/triggers")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libduet-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
foreach(pair IN ITEMS "command duet" "library ${library}" "development libduet-dev")
  separate_arguments(pair)
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright
    COMPONENT ${component})
endforeach()
include(CPack)
