# SPDX-License-Identifier: Apache-2.0
# What `duet info` says of this build, as definitions. Empty where something is not in it.

set(simgrid "")
if(DUET_HAVE_SIMGRID)
  set(simgrid "${SIMGRID_VERSION}")
endif()
set(blas "")
if(DUET_HAVE_BLAS)
  set(blas "${OPENBLAS_VERSION}")
endif()
set(cuda "")
set(architectures "")
if(DUET_HAVE_CUDA)
  set(cuda "${CUDAToolkit_VERSION}")
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
endif()
set(lto 0)
if(DUET_LTO)
  set(lto 1)
endif()
list(JOIN DUET_SANITIZE " " sanitizers)
# Of which commit this is, where it is built in its repository: with each one it is looked again.
set(commit "")
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} log -1 --format=%h --abbrev=12
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE commit ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE log ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  if(EXISTS ${log})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
  endif()
endif()
set_property(SOURCE cli/study.c cli/info.c
  APPEND PROPERTY COMPILE_DEFINITIONS "DUET_BUILD_COMMIT=\"${commit}\"")
set_property(SOURCE cli/info.c APPEND PROPERTY COMPILE_DEFINITIONS
  "DUET_BUILD_COMPILER=\"${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}\""
  "DUET_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\""
  "DUET_BUILD_SIMGRID=\"${simgrid}\""
  "DUET_BUILD_BLAS=\"${blas}\""
  "DUET_BUILD_CUDA=\"${cuda}\""
  "DUET_BUILD_CUDA_ARCHITECTURES=\"${architectures}\""
  "DUET_BUILD_SANITIZERS=\"${sanitizers}\""
  "DUET_BUILD_LTO=${lto}")
