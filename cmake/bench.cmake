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

# What duet's runs on GPUs are measured beside (cuBLAS, cuBLASXt, cuSOLVER, plain CUDA), and what a
# task on a GPU costs. The same peers once more with CUDA's functions computed on the host, and the
# overhead with the fake CUDA of tests/: for tests only.
set(cuda ${PROJECT_SOURCE_DIR}/bench/cuda)
set(testing ON)
if(DEFINED BUILD_TESTING)
  set(testing ${BUILD_TESTING}) # which CTest defines, after this file
endif()
set(peers ${cuda}/peers.c ${cuda}/check.c ${cuda}/copies.c ${cuda}/costs.c ${cuda}/devices.c
  ${cuda}/factor.c ${cuda}/fail.c ${cuda}/gemm.c ${cuda}/host.c ${cuda}/lines.c ${cuda}/memory.c)
if(DUET_HAVE_CUDA AND TARGET CUDA::cublas AND TARGET CUDA::cusolver)
  add_executable(bench-cuda_peers ${peers} ${cuda}/kernels.cu)
  target_include_directories(bench-cuda_peers PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(bench-cuda_peers PRIVATE duet_flags CUDA::cublas CUDA::cusolver
    CUDA::cudart_static Threads::Threads m)
  set_target_properties(bench-cuda_peers PROPERTIES
    OUTPUT_NAME cuda_peers RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  if(DUET_HAVE_BLAS AND testing)
    add_executable(bench-cuda_peers_fake
      ${peers} ${cuda}/testing_cuda.c ${cuda}/testing_cublas.c)
    target_include_directories(bench-cuda_peers_fake PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(bench-cuda_peers_fake SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(bench-cuda_peers_fake PRIVATE duet_flags duet_blas Threads::Threads m)
    set_target_properties(bench-cuda_peers_fake PROPERTIES
      OUTPUT_NAME cuda_peers_fake RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endif()
endif()
if(DUET_HAVE_CUDA)
  add_executable(bench-cuda_overhead ${cuda}/overhead.c ${cuda}/devices.c)
  duet_link_folders(bench-cuda_overhead)
  target_link_libraries(bench-cuda_overhead PRIVATE CUDA::cudart_static Threads::Threads m)
  set_target_properties(bench-cuda_overhead PROPERTIES
    OUTPUT_NAME cuda_overhead RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  if(DUET_HAVE_BLAS AND testing)
    add_executable(bench-cuda_overhead_fake ${cuda}/overhead.c ${cuda}/devices.c
      $<TARGET_OBJECTS:duet_fake_cuda>)
    duet_link_folders(bench-cuda_overhead_fake)
    target_include_directories(bench-cuda_overhead_fake SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(bench-cuda_overhead_fake PRIVATE Threads::Threads m)
    set_target_properties(bench-cuda_overhead_fake PROPERTIES
      OUTPUT_NAME cuda_overhead_fake RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endif()
endif()
