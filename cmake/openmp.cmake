# SPDX-License-Identifier: Apache-2.0
# The recorder of OpenMP programs: a tool in OpenMP's sense, libduet-openmp.so, that LLVM's OpenMP
# runtime opens inside the program. It needs the header omp-tools.h only, which comes with that
# runtime, in a folder of clang's whose other headers are clang's own: it gets a folder for itself.
# A sanitized one could not be opened by programs that are not.

set(DUET_HAVE_OPENMP OFF)
set(DUET_OPENMP_STATUS "off")
if(NOT DUET_OPENMP STREQUAL OFF)
  file(GLOB clang /usr/lib/llvm-*/lib/clang/*/include /usr/lib/clang/*/include)
  find_file(OMP_TOOLS_HEADER omp-tools.h HINTS ${clang})
  mark_as_advanced(OMP_TOOLS_HEADER)
  if(OMP_TOOLS_HEADER AND NOT DUET_SANITIZE)
    set(DUET_HAVE_OPENMP ON)
    set(DUET_OPENMP_STATUS "found")
  elseif(DUET_OPENMP STREQUAL ON)
    message(FATAL_ERROR "DUET_OPENMP=ON, but there is no omp-tools.h (libomp-dev has it), or "
      "sanitizers are asked for")
  elseif(DUET_SANITIZE)
    set(DUET_OPENMP_STATUS "not with sanitizers")
  else()
    set(DUET_OPENMP_STATUS "not found")
  endif()
endif()

# duet_recorder(FOLDER): the recorder, beside the modules, which it is none of.
function(duet_recorder folder)
  if(NOT DUET_HAVE_OPENMP)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  list(FILTER sources EXCLUDE REGEX "/testing_[^/]*$")
  configure_file(${OMP_TOOLS_HEADER} ${PROJECT_BINARY_DIR}/omp-tools/omp-tools.h COPYONLY)
  add_library(duet_openmp MODULE ${sources})
  target_include_directories(duet_openmp PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/include)
  target_include_directories(duet_openmp SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/omp-tools)
  # dladdr and the program's name are no part of POSIX
  target_compile_definitions(duet_openmp PRIVATE _GNU_SOURCE)
  # the writers of JSON and of compressed files alone, without what else is in that library and
  # what that needs
  add_dependencies(duet_openmp duet_base)
  target_link_libraries(duet_openmp PRIVATE duet_flags $<TARGET_FILE:duet_base>
    PkgConfig::ZLIB m ${CMAKE_DL_LIBS})
  set_target_properties(duet_openmp PROPERTIES
    OUTPUT_NAME duet-openmp C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  add_dependencies(duet_command duet_openmp)
  install(TARGETS duet_openmp
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duet COMPONENT command)
endfunction()

# duet_gomp(FOLDER): libduet-gomp.so, by which programs with gcc's OpenMP run on duet. It has all of
# libduet inside, hidden, so that its calls are as cheap as in one program.
function(duet_gomp folder)
  if(NOT TARGET duet_shared)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  list(APPEND sources ${PROJECT_SOURCE_DIR}/openmp/names.c)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/gomp.map)
  get_target_property(objects duet_shared SOURCES)
  get_target_property(libraries duet_shared LINK_LIBRARIES)
  add_library(duet_gomp SHARED ${sources} ${objects})
  target_include_directories(duet_gomp PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/include)
  set_source_files_properties(${sources} PROPERTIES COMPILE_DEFINITIONS _GNU_SOURCE)
  duet_lto_link(duet_gomp ON)
  target_link_libraries(duet_gomp PRIVATE duet_flags ${libraries} ${CMAKE_DL_LIBS})
  target_link_options(duet_gomp PRIVATE ${DUET_CUDA_EXIT}
    -Wl,--version-script=${exports} -Wl,-Bsymbolic -Wl,--as-needed)
  set_target_properties(duet_gomp PROPERTIES
    OUTPUT_NAME duet-gomp LINKER_LANGUAGE C C_VISIBILITY_PRESET hidden LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  add_dependencies(duet_command duet_gomp)
  install(TARGETS duet_gomp
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duet COMPONENT command)
endfunction()
