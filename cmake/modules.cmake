# SPDX-License-Identifier: Apache-2.0
# Modules: parts of duet in shared objects of their own, libduet-NAME.so, because they bring large
# libraries with them. runtime/modules/module.h says how they are opened; in the build they are in
# modules/, installed in LIBDIR/duet.

# Folder libraries that the command has as modules, what opens each there, and which of these this
# build lacks: what opens them says so.
set(DUET_IN_MODULES "")
set(DUET_MODULES "")
set(DUET_LACKING "")

# duet_module(NAME PART FOLDER...): the module of the folder library PART, with what PART uses of
# the FOLDERs.
function(duet_module name part)
  add_library(duet_opened_${name} STATIC ${PROJECT_SOURCE_DIR}/runtime/modules/${name}.c)
  target_include_directories(duet_opened_${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(duet_opened_${name} PRIVATE duet_flags PkgConfig::GLIB)
  set_target_properties(duet_opened_${name} PROPERTIES C_VISIBILITY_PRESET hidden)
  set(DUET_MODULES ${DUET_MODULES} ${name} PARENT_SCOPE)
  if(NOT TARGET duet_${part})
    set(DUET_LACKING ${DUET_LACKING} ${name} PARENT_SCOPE)
    return()
  endif()
  set(target duet_module_${name})
  set(exports ${PROJECT_SOURCE_DIR}/cmake/modules.map)
  add_library(${target} MODULE ${PROJECT_SOURCE_DIR}/runtime/modules/${name}_module.c)
  target_compile_definitions(${target} PRIVATE ${DUET_MODULE_DEFINITIONS})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  list(TRANSFORM ARGN PREPEND duet_)
  list(JOIN ARGN "," folders)
  target_link_libraries(${target} PRIVATE duet_flags "$<LINK_GROUP:RESCAN,duet_${part},${folders}>")
  duet_lto_link(${target} ON)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${exports} -Wl,-Bsymbolic-functions -Wl,--as-needed)
  if(NOT DUET_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME duet-${name}
    LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  add_dependencies(duet_opened_${name} ${target})
  set(DUET_IN_MODULES ${DUET_IN_MODULES} duet_${part} PARENT_SCOPE)
  set(component command)
  if(NOT name STREQUAL "blas")
    set(component library)
  endif()
  install(TARGETS ${target}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duet COMPONENT ${component})
endfunction()

# How modules are found: from the program's folder, and absolutely.
file(RELATIVE_PATH way ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/duet)
set(DUET_MODULE_DEFINITIONS
  DUET_MODULE_BUILD="${PROJECT_VERSION}"
  DUET_MODULE_WAY="${way}"
  DUET_MODULE_DIR="${CMAKE_INSTALL_FULL_LIBDIR}/duet")

# What the Python package opens beside libduet: a policy, and task graphs from files.
function(duet_python)
  add_library(duet_python_policy MODULE ${PROJECT_SOURCE_DIR}/python/policy.c)
  add_library(duet_python MODULE ${PROJECT_SOURCE_DIR}/python/graph.c)
  target_link_libraries(duet_python PRIVATE duet_shared PkgConfig::GLIB
    "$<LINK_GROUP:RESCAN,duet_workloads_files,duet_platforms,duet_base>")
  duet_lto_link(duet_python ON)
  set(package ${CMAKE_INSTALL_DATADIR}/duet/python)
  foreach(target IN ITEMS duet_python duet_python_policy)
    string(REPLACE "_" "-" name ${target})
    target_include_directories(${target} PRIVATE
      ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE duet_flags)
    set_target_properties(${target} PROPERTIES
      PREFIX "lib" OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duet COMPONENT library)
  endforeach()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/duet DESTINATION ${package} COMPONENT command
    FILES_MATCHING PATTERN "*.py")
endfunction()
