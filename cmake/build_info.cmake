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
set_property(SOURCE cli/main.c cli/info_text.c cli/info_json.c cli/study.c
  APPEND PROPERTY COMPILE_DEFINITIONS
  "DUET_BUILD_VERSION=\"${PROJECT_VERSION}\""
  "DUET_BUILD_COMPILER=\"${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}\""
  "DUET_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\""
  "DUET_BUILD_SIMGRID=\"${simgrid}\""
  "DUET_BUILD_BLAS=\"${blas}\""
  "DUET_BUILD_CUDA=\"${cuda}\""
  "DUET_BUILD_CUDA_ARCHITECTURES=\"${architectures}\""
  "DUET_BUILD_SANITIZERS=\"${sanitizers}\""
  "DUET_BUILD_LTO=${lto}")
