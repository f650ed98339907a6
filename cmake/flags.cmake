# SPDX-License-Identifier: Apache-2.0
# How everything is compiled: language levels, warnings, sanitizers. Defines the interface target
# duet_flags, which every target of ours links privately.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(DUET_CCACHE ccache)
mark_as_advanced(DUET_CCACHE)
if(DUET_CCACHE)
  foreach(lang C CXX CUDA)
    if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER ${DUET_CCACHE})
    endif()
  endforeach()
endif()

add_library(duet_flags INTERFACE)

# No contraction of a*b+c: simulated dates must be the same digits with every compiler and
# processor. Calls inside libduet are not there to be replaced by the application.
# (C and C++ are compiled by the compilers that know these options; nvcc has its own below.)
set(host "$<COMPILE_LANGUAGE:C,CXX>")
target_compile_options(duet_flags INTERFACE
  "$<${host}:-ffp-contract=off;-fno-semantic-interposition>"
  "$<${host}:-Wall;-Wextra;-Wno-unused-parameter>"
  "$<${host}:-Wshadow;-Wpointer-arith;-Wcast-qual;-Wundef;-Wvla;-Wwrite-strings>"
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:CXX>:-Wmissing-declarations -Wnon-virtual-dtor>)
# A text that is NULL is null to the functions that print JSON, which have printf's attribute.
target_compile_options(duet_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wno-format-overflow>)
# nvcc: as above, also for what runs on the GPU. The host's part is mostly made by nvcc itself.
set(device "$<COMPILE_LANGUAGE:CUDA>")
target_compile_options(duet_flags INTERFACE
  "$<${device}:--fmad=false;-Wno-deprecated-gpu-targets;-Xcompiler=-ffp-contract=off>"
  "$<${device}:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>")
# of Fortran 2008 alone, so that other compilers know it, too
set(fortran "$<COMPILE_LANG_AND_ID:Fortran,GNU>")
target_compile_options(duet_flags INTERFACE
  "$<${fortran}:-std=f2008;-Wall;-Wextra;-Wno-compare-reals>")
if(DUET_WERROR)
  target_compile_options(duet_flags INTERFACE
    $<${host}:-Werror> $<${fortran}:-Werror> "$<${device}:-Werror=all-warnings;-Xcompiler=-Werror>")
endif()
# Programs that link libduet read a thread's own variables by descriptors, in a third of the
# instructions that __tls_get_addr takes; libduet may still be loaded later.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  set_source_files_properties(real/worker.c PROPERTIES COMPILE_OPTIONS -mtls-dialect=gnu2)
endif()
if(DUET_NATIVE)
  target_compile_options(duet_flags INTERFACE $<${host}:-march=native>)
endif()

# POSIX 2008 with its XSI part (realpath) everywhere but in targets that ask for pure C (the core).
set(posix $<NOT:$<BOOL:$<TARGET_PROPERTY:DUET_PURE_C>>>)
target_compile_definitions(duet_flags INTERFACE
  $<${posix}:_POSIX_C_SOURCE=200809L> $<${posix}:_XOPEN_SOURCE=700>)

# The core, the policies and the real engine call each other for every task: libduet and the command
# are optimised as a whole. The objects stay usable without, for the many small tests.
set(DUET_LTO OFF)
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT DUET_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  set(DUET_LTO ON)
endif()
function(duet_lto_objects target)
  if(DUET_LTO AND TARGET ${target})
    target_compile_options(${target} PRIVATE -O3 -flto -ffat-lto-objects)
  endif()
endfunction()
# duet_lto_link(target ON|OFF); never where DUET_PLAIN_LINKS is given, as by builds whose objects
# are those of another one and whose speed is nobody's concern
function(duet_lto_link target wanted)
  if(DUET_LTO)
    set(wanted "$<AND:$<BOOL:${wanted}>,$<NOT:$<BOOL:${DUET_PLAIN_LINKS}>>>")
    target_link_options(${target} PRIVATE $<IF:${wanted},-flto=auto,-fno-lto>)
  endif()
endfunction()

# Its loops have no BLAS: this halves their time.
set(loops examples/tiled_cholesky.c examples/tiled_cholesky.cpp)
set_source_files_properties(${loops} PROPERTIES COMPILE_OPTIONS -O3)

if(DUET_SANITIZE)
  if("thread" IN_LIST DUET_SANITIZE AND "address" IN_LIST DUET_SANITIZE)
    message(FATAL_ERROR "DUET_SANITIZE: thread and address exclude each other")
  endif()
  foreach(sanitizer IN LISTS DUET_SANITIZE)
    if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
      message(FATAL_ERROR "DUET_SANITIZE: unknown \"${sanitizer}\" (address, undefined, thread)")
    endif()
    target_compile_options(duet_flags INTERFACE $<${host}:-fsanitize=${sanitizer}>)
    target_link_options(duet_flags INTERFACE -fsanitize=${sanitizer})
  endforeach()
  # -Og -g1: compiled in half the time, and reports still have lines
  target_compile_options(duet_flags INTERFACE
    "$<${host}:-fno-omit-frame-pointer;-fno-sanitize-recover=all;-Og;-g1>")
  # Programs that are where they were linked to be begin a fifth sooner, and tests begin thousands.
  set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -no-pie")
  # What only computes, for seconds, on data that no other thread has takes many times as long where
  # each access is looked at. An example's accesses may be outside of what it has.
  set_source_files_properties(runs/probe.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  set_source_files_properties(${loops}
    PROPERTIES COMPILE_OPTIONS "-O3;-fno-sanitize=thread,undefined")
  # GCC says of the fences in headers of C++ that it cannot follow them: nothing of ours has any
  if("thread" IN_LIST DUET_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(duet_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
