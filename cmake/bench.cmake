# SPDX-License-Identifier: Apache-2.0
# Benchmarks: bench/overhead/ as a program for each runtime that is there, bench/peers/ for each
# library. Peers are never required.

# duet_benchmark(NAME SOURCE...): build/bench/NAME, which may include bench/ and core/include.
function(duet_benchmark name)
  set(target bench-${name})
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE duet_flags m)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

find_package(OpenMP COMPONENTS C)
set(bench ${PROJECT_SOURCE_DIR}/bench)
set(openmp "")
if(OpenMP_C_FOUND)
  set(openmp OpenMP::OpenMP_C)
endif()

# bench/overhead_NAME out of bench/overhead/SOURCE.c and what all of them share
set(overhead ${bench}/overhead)
function(duet_overhead name source)
  duet_benchmark(overhead_${name} ${overhead}/main.c ${overhead}/kernels.c ${overhead}/${source}.c)
  target_compile_definitions(bench-overhead_${name} PRIVATE OVERHEAD_NAME="${name}")
  target_link_libraries(bench-overhead_${name} PRIVATE ${ARGN})
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

# The core alone, on threads of the system. And counted: with calls for each access to memory, which
# go to bench/contention/lines.c instead of the thread sanitizer's library.
set(contention ${bench}/contention)
function(duet_contention name counts)
  duet_benchmark(${name} ${contention}/main.c ${contention}/engine.c
    ${contention}/real.c ${contention}/logical.c ${contention}/lines.c ${ARGN})
  target_include_directories(bench-${name} PRIVATE ${PROJECT_SOURCE_DIR}/core/include)
  target_compile_definitions(bench-${name} PRIVATE COUNTS=${counts})
  target_link_libraries(bench-${name} PRIVATE Threads::Threads)
endfunction()
duet_contention(contention 0)
target_link_libraries(bench-contention PRIVATE duet_core)
duet_lto_link(bench-contention ON)
if(NOT DUET_SANITIZE)
  get_target_property(sources duet_core SOURCES)
  add_library(bench-core_counted OBJECT EXCLUDE_FROM_ALL ${sources})
  set_target_properties(bench-core_counted PROPERTIES DUET_PURE_C ON)
  target_include_directories(bench-core_counted PRIVATE
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(bench-core_counted PRIVATE duet_flags)
  target_compile_options(bench-core_counted PRIVATE
    -O2 -g -fsanitize=thread -fno-builtin-memset -fno-builtin-memcpy)
  duet_contention(contention_count 1 ${contention}/memory.c $<TARGET_OBJECTS:bench-core_counted>)
  set_target_properties(bench-contention_count PROPERTIES EXCLUDE_FROM_ALL ON)
  target_compile_options(bench-contention_count PRIVATE -O2)
  target_link_options(bench-contention_count PRIVATE -pie -Wl,--wrap=memset,--wrap=memcpy)
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

# With CUDA: what a task on a GPU costs, and once more with the fake CUDA of tests/, in
# build/tests/, for tests only.
set(testing ON)
if(DEFINED BUILD_TESTING)
  set(testing ${BUILD_TESTING}) # which CTest defines, after this file
endif()
function(duet_fake_benchmark name)
  target_include_directories(bench-${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  set_target_properties(bench-${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()
if(DUET_HAVE_CUDA)
  duet_overhead(cuda duet Threads::Threads CUDA::cudart_static)
  target_sources(bench-overhead_cuda PRIVATE ${overhead}/cuda.cu)
  duet_link_folders(bench-overhead_cuda)
  if(DUET_HAVE_BLAS AND testing)
    duet_overhead(cuda_fake duet Threads::Threads)
    target_sources(bench-overhead_cuda_fake PRIVATE
      ${overhead}/testing_cuda.c $<TARGET_OBJECTS:duet_fake_cuda>)
    duet_link_folders(bench-overhead_cuda_fake)
    duet_fake_benchmark(overhead_cuda_fake)
  endif()
endif()

# The libraries beside which duet's runs are measured: OpenBLAS; cuBLAS, cuBLASXt and cuSOLVER, and
# these once more with their functions computed on the host, for tests.
function(duet_peers name)
  duet_benchmark(${name} ${bench}/peers/main.c ${ARGN})
  target_link_libraries(bench-${name} PRIVATE duet_blas ${openmp} PkgConfig::GLIB)
endfunction()
if(DUET_HAVE_BLAS)
  duet_peers(lapack ${bench}/peers/lapack.c)
endif()
if(DUET_HAVE_CUDA AND DUET_HAVE_BLAS AND TARGET CUDA::cublas AND TARGET CUDA::cusolver)
  duet_peers(cuda_peers ${bench}/peers/cuda.c)
  target_link_libraries(bench-cuda_peers PRIVATE
    CUDA::cublas CUDA::cusolver CUDA::cudart_static Threads::Threads)
  if(testing)
    duet_peers(cuda_peers_fake ${bench}/peers/cuda.c ${bench}/peers/testing_cuda.c
      ${bench}/peers/testing_cublas.c)
    duet_fake_benchmark(cuda_peers_fake)
  endif()
endif()

# Recorded runs, and models that are compared on them (bench/corpus.py).
if(DUET_HAVE_BLAS)
  file(GLOB corpus CONFIGURE_DEPENDS ${bench}/corpus/*.c)
  duet_benchmark(corpus ${corpus})
  duet_link_folders(bench-corpus)
  target_link_libraries(bench-corpus PRIVATE PkgConfig::GLIB)
endif()

# ScaLAPACK over the same MPI as duet's, and what counts any program's messages, for
# bench/distributed.py
find_library(DUET_SCALAPACK NAMES scalapack-openmpi scalapack)
mark_as_advanced(DUET_SCALAPACK)
if(DUET_HAVE_MPI)
  if(DUET_SCALAPACK)
    duet_benchmark(scalapack ${bench}/peers/scalapack.c)
    target_link_libraries(bench-scalapack PRIVATE ${DUET_SCALAPACK} MPI::MPI_C)
  endif()
  add_library(bench-count_mpi SHARED ${bench}/peers/count_mpi.c)
  target_link_libraries(bench-count_mpi PRIVATE duet_flags MPI::MPI_C)
  set_target_properties(bench-count_mpi PROPERTIES C_VISIBILITY_PRESET default
    OUTPUT_NAME count_mpi LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endif()

# What carries messages between nodes, beside MPI alone.
if(DUET_HAVE_MPI)
  duet_benchmark(messages ${bench}/messages/main.c)
  target_include_directories(bench-messages PRIVATE ${PROJECT_SOURCE_DIR}/core/include)
  target_link_libraries(bench-messages PRIVATE
    duet_nodes_mpi "$<LINK_GROUP:RESCAN,duet_nodes,duet_core>" MPI::MPI_C Threads::Threads)
  duet_lto_link(bench-messages OFF)
endif()
