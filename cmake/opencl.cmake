# SPDX-License-Identifier: Apache-2.0
# OpenCL: its headers and the loader of implementations (ICD). CLBlast, whose header is enough, as
# the library is opened when a kernel first needs it. Without them what stands in says why no device
# is used.

set(DUET_HAVE_OPENCL OFF)
set(DUET_HAVE_CLBLAST OFF)
set(DUET_OPENCL_STATUS "off")
if(NOT DUET_OPENCL STREQUAL OFF)
  find_package(OpenCL QUIET)
  find_path(CLBLAST_INCLUDE_DIR clblast_c.h)
  mark_as_advanced(CLBLAST_INCLUDE_DIR)
  if(OpenCL_FOUND)
    set(DUET_HAVE_OPENCL ON)
    set(DUET_OPENCL_STATUS "found, no CLBlast")
    if(CLBLAST_INCLUDE_DIR)
      set(DUET_HAVE_CLBLAST ON)
      set(DUET_OPENCL_STATUS "and CLBlast")
    endif()
  elseif(DUET_OPENCL STREQUAL ON)
    message(FATAL_ERROR "DUET_OPENCL=ON, but CMake finds no OpenCL: its headers and libOpenCL.so")
  else()
    set(DUET_OPENCL_STATUS "not found")
  endif()
endif()
