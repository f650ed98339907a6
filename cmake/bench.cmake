# SPDX-License-Identifier: Apache-2.0
# Benchmarks: a program for each file of bench/, and bench/overhead/ as a program for each runtime
# that is there. Peers are never required.

set(elsewhere lapack)
if(NOT DUET_HAVE_SIMGRID)
  list(APPEND elsewhere network)
endif()
duet_programs(bench EXCLUDE ${elsewhere})
if(DUET_HAVE_BLAS)
  set(real_s float)
  set(real_d double)
  foreach(prefix IN ITEMS s d)
    set(target bench-lapack_${prefix})
    add_executable(${target} ${PROJECT_SOURCE_DIR}/bench/lapack.c)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${target} PRIVATE PREFIX=${prefix} REAL=${real_${prefix}})
    target_link_libraries(${target} PRIVATE duet_flags duet_blas m)
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME lapack_${prefix} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  endforeach()
endif()
find_package(OpenMP COMPONENTS C)
if(TARGET bench-openmp AND OpenMP_C_FOUND)
  target_link_libraries(bench-openmp PRIVATE OpenMP::OpenMP_C)
endif()

# bench/overhead_NAME out of bench/overhead/SOURCE.c and what all of them share
set(overhead ${PROJECT_SOURCE_DIR}/bench/overhead)
function(duet_overhead name source)
  set(target bench-overhead_${name})
  add_executable(${target} ${overhead}/main.c ${overhead}/kernels.c ${overhead}/${source}.c)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE OVERHEAD_NAME="${name}")
  target_link_libraries(${target} PRIVATE duet_flags m ${ARGN})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME overhead_${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

if(TARGET duet_shared)
  duet_overhead(duet duet duet_shared)
endif()
pkg_check_modules(STARPU QUIET IMPORTED_TARGET starpu-1.3)
if(STARPU_FOUND)
  duet_overhead(starpu starpu PkgConfig::STARPU)
endif()
if(OpenMP_C_FOUND)
  set(runtime libgomp)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    set(runtime libomp)
  endif()
  duet_overhead(${runtime} openmp OpenMP::OpenMP_C)
endif()

# LLVM's runtime needs LLVM's compiler, beside the one that compiles the rest. DWARF 4: valgrind
# stumbles over clang's fifth version.
find_program(DUET_CLANG clang)
mark_as_advanced(DUET_CLANG)
if(DUET_CLANG AND NOT TARGET bench-overhead_libomp AND NOT DUET_SANITIZE)
  set(clang ${DUET_CLANG} -std=c11 -O2 -gdwarf-4 -DNDEBUG -D_POSIX_C_SOURCE=200809L -fopenmp
    -DOVERHEAD_NAME="libomp" -I${PROJECT_SOURCE_DIR})
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/libomp)
  file(WRITE ${probe}.c "int main(void)\n{\n    return 0;\n}\n")
  execute_process(COMMAND ${clang} ${probe}.c -o ${probe} RESULT_VARIABLE failed
    OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(program ${PROJECT_BINARY_DIR}/bench/overhead_libomp)
    add_custom_command(OUTPUT ${program}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/bench
      COMMAND ${clang} ${overhead}/main.c ${overhead}/kernels.c ${overhead}/openmp.c -lm
        -o ${program}
      DEPENDS ${overhead}/main.c ${overhead}/kernels.c ${overhead}/openmp.c
        ${overhead}/overhead.h ${PROJECT_SOURCE_DIR}/bench/timing.h
      VERBATIM)
    add_custom_target(bench-overhead_libomp ALL DEPENDS ${program})
  endif()
endif()
