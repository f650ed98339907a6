# SPDX-License-Identifier: Apache-2.0
# Libraries of others. Required ones end in an error that says how to get them; DUET_SIMGRID,
# DUET_CUDA, DUET_OPENCL, DUET_OPENMP and DUET_MPI decide about the rest.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(GLIB IMPORTED_TARGET glib-2.0>=2.66)
pkg_check_modules(JANSSON IMPORTED_TARGET jansson>=2.11)
pkg_check_modules(LIBXML IMPORTED_TARGET libxml-2.0)
pkg_check_modules(ZLIB IMPORTED_TARGET zlib)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc>=2.0)
pkg_check_modules(SQLITE IMPORTED_TARGET sqlite3>=3.25)
if(NOT GLIB_FOUND OR NOT JANSSON_FOUND OR NOT LIBXML_FOUND OR NOT ZLIB_FOUND OR
    NOT HWLOC_FOUND OR NOT SQLITE_FOUND)
  message(FATAL_ERROR "duet needs GLib, jansson, libxml2, zlib, hwloc and SQLite with their "
    "headers: ./setup.sh installs them")
endif()

foreach(option DUET_SIMGRID DUET_CUDA DUET_OPENCL DUET_OPENMP DUET_MPI)
  string(TOUPPER "${${option}}" ${option}) # "on" means what "ON" does
  if(NOT "${${option}}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option} is \"${${option}}\": it must be AUTO, ON or OFF")
  endif()
endforeach()

# SimGrid ships a pkg-config file and, in Debian, no CMake file.
set(DUET_HAVE_SIMGRID OFF)
set(DUET_SIMGRID_STATUS "off")
if(NOT DUET_SIMGRID STREQUAL OFF)
  pkg_check_modules(SIMGRID QUIET IMPORTED_TARGET simgrid>=3.32)
  if(SIMGRID_FOUND)
    set(DUET_HAVE_SIMGRID ON)
    set(DUET_SIMGRID_STATUS ${SIMGRID_VERSION})
    if(SIMGRID_VERSION VERSION_GREATER_EQUAL 4)
      set(CMAKE_CXX_STANDARD 20) # its headers need it
    endif()
  elseif(DUET_SIMGRID STREQUAL ON)
    message(FATAL_ERROR "DUET_SIMGRID=ON, but pkg-config finds no simgrid >= 3.32")
  else()
    set(DUET_SIMGRID_STATUS "not found")
  endif()
endif()

# What computes. Without it workloads can only be simulated.
pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
find_library(LAPACKE_LIBRARY lapacke)
find_path(LAPACKE_INCLUDE_DIR lapacke.h)
mark_as_advanced(LAPACKE_INCLUDE_DIR LAPACKE_LIBRARY)
set(DUET_HAVE_BLAS OFF)
set(DUET_BLAS_STATUS "not found (no kernels)")
if(OPENBLAS_FOUND AND LAPACKE_LIBRARY AND LAPACKE_INCLUDE_DIR)
  set(DUET_HAVE_BLAS ON)
  set(DUET_BLAS_STATUS ${OPENBLAS_VERSION})
  add_library(duet_blas INTERFACE)
  target_include_directories(duet_blas INTERFACE ${LAPACKE_INCLUDE_DIR})
  target_link_libraries(duet_blas INTERFACE ${LAPACKE_LIBRARY} PkgConfig::OPENBLAS)
endif()

# By which the processes of a study on several machines find each other.
set(DUET_HAVE_MPI OFF)
set(DUET_MPI_STATUS "off")
if(NOT DUET_MPI STREQUAL OFF)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS C)
  set(DUET_HAVE_MPI ${MPI_C_FOUND})
  set(DUET_MPI_STATUS "not found")
  if(DUET_HAVE_MPI)
    set(DUET_MPI_STATUS "${MPI_C_VERSION}")
  elseif(DUET_MPI STREQUAL ON)
    message(FATAL_ERROR "DUET_MPI=ON, but there is no MPI (libopenmpi-dev is one)")
  endif()
endif()

# A compiler for the module of Fortran: what is written in it is left out without one.
include(CheckLanguage)
check_language(Fortran)
set(DUET_HAVE_FORTRAN OFF)
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
  set(DUET_HAVE_FORTRAN ON)
endif()

include(cuda)
include(opencl)
include(openmp)
