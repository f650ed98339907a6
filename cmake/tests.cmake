# SPDX-License-Identifier: Apache-2.0
# Tests. X/Y_test.c, .cpp, .f90, .py and .sh become the test X.Y; those in tests/ are about the
# repository as a whole and are called repo.Y. Exit status 77 means skipped. Y ending
# in "_long" gives the label "long": left out under sanitizers. What takes long or may be disturbed
# has the label "check": scripts/check runs it, and scripts/test the rest.
#
# Tests find in their environment: DUET (the command), DUET_SOURCE_DIR, DUET_BUILD_DIR; the
# second also is a definition of C and C++ tests, as a string.
#
# Those in backends/opencl/, and those whose Y begins with "opencl_" or "kernels_opencl", are left
# out without OpenCL. Those in backends/cuda/ and those whose Y begins with "cuda_" or
# "kernels_cuda" are left out without CUDA. With it they are linked with the fake of
# tests/fake_cuda/, which has two devices for them, so that they need no GPU; X.Y_gpu are some of
# them without the fake, for machines that have one. The command linked with the fake is
# DUET_FAKE_CUDA in the environment.

include(CheckLinkerFlag)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# not a script that looks for the interpreter first, as pyenv's do, which takes ten times as long
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
  OUTPUT_VARIABLE DUET_PYTHON OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
check_linker_flag(C -fuse-ld=gold DUET_HAVE_GOLD) # takes half the time, for dozens of programs
cmake_host_system_information(RESULT DUET_CORES QUERY NUMBER_OF_LOGICAL_CORES)

# OpenCL is tested on pocl, whose devices are CPUs: two of them, with as many threads as wait for
# each other. What it compiles takes long, CLBlast's kernels half as long without optimisation (the
# option ends with a space, as CLBlast appends others), and is kept, also for the builds below.
set(opencl POCL_DEVICES=pthread\ pthread POCL_MAX_PTHREAD_COUNT=4
  CLBLAST_BUILD_OPTIONS=-cl-opt-disable\ )
if(DEFINED ENV{POCL_CACHE_DIR})
  list(APPEND opencl POCL_CACHE_DIR=$ENV{POCL_CACHE_DIR})
else()
  list(APPEND opencl POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/tests/pocl)
endif()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests/pocl)

string(REPLACE ";" "," sanitizers "${DUET_SANITIZE}")
set(DUET_TEST_ENVIRONMENT
  DUET=${PROJECT_BINARY_DIR}/duet
  DUET_SOURCE_DIR=${PROJECT_SOURCE_DIR}
  DUET_BUILD_DIR=${PROJECT_BINARY_DIR}
  DUET_CC=${CMAKE_C_COMPILER}
  DUET_CXX=${CMAKE_CXX_COMPILER}
  DUET_NM=${CMAKE_NM}
  DUET_SANITIZE=${sanitizers}
  PYTHONDONTWRITEBYTECODE=1
  PYTHONPATH=${PROJECT_SOURCE_DIR}/tests
  G_DEBUG=fatal-criticals
  DUET_FAKE_CUDA=${PROJECT_BINARY_DIR}/tests/duet_fake_cuda
  HWLOC_PLUGINS_PATH=/nowhere # hwloc opens X11 and OpenCL's with them, at each engine's begin
  ${opencl}
  LC_ALL=C.UTF-8)
if(DUET_SANITIZE)
  set(suppressions ${PROJECT_SOURCE_DIR}/tests/sanitizers)
  # as malloc does; and LLVM, which pocl calls, sets a stack of its own for signals
  set(memory allocator_may_return_null=1:use_sigaltstack=0)
  set(quick atexit_sleep_ms=50) # and not a second at the end of each process
  # where frames are kept that functions have left: of 64 KiB, which take a fifth of the time less
  # than 1 MiB, as most processes live shortly
  set(frames detect_stack_use_after_return=1:min_uar_stack_size_log=16:max_uar_stack_size_log=16)
  list(APPEND DUET_TEST_ENVIRONMENT
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:${frames}:${memory}
    LSAN_OPTIONS=suppressions=${suppressions}/leak.supp:print_suppressions=0
    TSAN_OPTIONS=suppressions=${suppressions}/thread.supp:halt_on_error=1:${quick}:${memory}
    UBSAN_OPTIONS=print_stacktrace=1
    G_SLICE=always-malloc)
endif()

# Properties that all tests have. The time ends those that hang: beside other work, on a slow
# machine and under sanitizers tests take ten times as long as usual. repo.scripts knows it, too.
function(duet_test_properties name)
  set_tests_properties(${name} PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT 1200 ENVIRONMENT "${DUET_TEST_ENVIRONMENT}")
  if(name MATCHES "^repo\\.")
    set_tests_properties(${name} PROPERTIES LABELS repo)
  elseif(name MATCHES "_long$" OR (DUET_SANITIZE AND
      name MATCHES "^(cli[.](.*_mpi|calibrate_nodes|(cuda|opencl)_run|golden|tune)|nodes.mpi)$") OR
      (DUET_SANITIZE MATCHES address AND name MATCHES
        "^(cli[.](completion|manual|simulate_nodes)|examples.worlds)$") OR
      (DUET_SANITIZE MATCHES thread AND name MATCHES "^real[.](links|machine|pci|topology)$"))
    # what these run, other tests do as well (study.*, sim.*, workloads.*), or is MPI's; or they
    # compare text, or describe machines, without threads
    set_tests_properties(${name} PROPERTIES LABELS long COST 100 TIMEOUT 1200)
  elseif(name MATCHES "opencl") # beside the builds below, for which pocl keeps what it compiles
    set_tests_properties(${name} PROPERTIES COST 500)
  elseif(name MATCHES "^((cli|examples|openmp)[.]|report[.]page[.]|workloads.cuda_run)")
    # tests of whole commands: first those that take long, so that no core waits at the end
    set_tests_properties(${name} PROPERTIES COST 10)
  endif()
  if(name MATCHES "_long$|^repo[.](sanitize|without|recipes|tidy|format|package|repeat|docs_)" OR
      name MATCHES "^(cli[.](.*_mpi|opencl_run)|nodes[.]mpi)$" OR
      name MATCHES "^bench[.](contention|corpus|decisions)$")
    set_property(TEST ${name} APPEND PROPERTY LABELS check)
  endif()
endfunction()

# What tests share and is no header: testing*.c stands beside what it tests. Those for CUDA and
# OpenCL have a stand-in of the same functions, ..._absent.c.
add_library(duet_testing STATIC tests/main.c)
foreach(kind CUDA OPENCL)
  string(TOLOWER ${kind} folder)
  if(DUET_HAVE_${kind})
    target_sources(duet_testing PRIVATE backends/${folder}/testing_kernels.c)
  else()
    target_sources(duet_testing PRIVATE backends/${folder}/testing_kernels_absent.c)
  endif()
endforeach()
if(DUET_HAVE_CUDA)
  target_sources(duet_testing PRIVATE
    backends/cuda/testing_gpu.cu backends/cuda/testing_no_fake.c)
  target_link_libraries(duet_testing PRIVATE CUDA::cudart_static)
endif()
if(DUET_HAVE_OPENCL)
  target_link_libraries(duet_testing PRIVATE OpenCL::OpenCL)
endif()
target_include_directories(duet_testing PRIVATE
  ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
target_link_libraries(duet_testing PRIVATE duet_flags PkgConfig::GLIB Threads::Threads)

# The fake CUDA needs the headers of the real one, and a BLAS to compute with. It is linked as
# objects: what they define, the linker takes from no library.
set(DUET_HAVE_FAKE_CUDA OFF)
if(DUET_HAVE_CUDA AND DUET_HAVE_BLAS)
  set(DUET_HAVE_FAKE_CUDA ON)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fake_cuda/*.c)
  add_library(duet_fake_cuda OBJECT ${sources})
  target_include_directories(duet_fake_cuda PRIVATE
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(duet_fake_cuda PRIVATE
    duet_flags duet_blas CUDA::cudart_static Threads::Threads m)
  # mapping without a file is no part of POSIX
  set_source_files_properties(tests/fake_cuda/memory.c PROPERTIES COMPILE_DEFINITIONS _GNU_SOURCE)

  add_executable(duet_fake_command cli/main.c $<TARGET_OBJECTS:duet_fake_cuda>)
  duet_link_folders(duet_fake_command)
  target_link_libraries(duet_fake_command PRIVATE PkgConfig::GLIB Threads::Threads m)
  set_target_properties(duet_fake_command PROPERTIES
    OUTPUT_NAME duet_fake_cuda RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endif()

# scripts/repeat --time delays preloads it.
add_library(duet_delays MODULE ${PROJECT_SOURCE_DIR}/tests/delays.c)
target_link_libraries(duet_delays PRIVATE duet_flags ${CMAKE_DL_LIBS})
set_target_properties(duet_delays PROPERTIES
  PREFIX "" OUTPUT_NAME delays C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# Tests in C and C++ are linked into one program for each folder and kind of CUDA, which is much
# quicker than one for each: the program's main function is in tests/program.h, those of the tests
# are renamed. build/tests/X.Y is a link to the program, which runs the test that it is called by.
# duet_compiled_test(NAME SOURCE PROGRAM) puts the test into the program; duet_test_programs() makes
# the programs when all tests are known.
set(DUET_TEST_PROGRAMS "")
function(duet_compiled_test name source program)
  string(MAKE_C_IDENTIFIER "test_${source}" main)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS main=${main})
  set_property(GLOBAL APPEND PROPERTY duet_${program}_sources ${source})
  set_property(GLOBAL APPEND_STRING PROPERTY duet_${program}_list
    " \\\n    TEST(\"${name}\", ${main})")
  if(NOT program IN_LIST DUET_TEST_PROGRAMS)
    set(DUET_TEST_PROGRAMS ${DUET_TEST_PROGRAMS} ${program} PARENT_SCOPE)
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  file(CREATE_LINK programs/${program} ${PROJECT_BINARY_DIR}/tests/${name} SYMBOLIC)
  add_custom_target(test-${name} DEPENDS tests-${program})
  add_test(NAME ${name} COMMAND ${PROJECT_BINARY_DIR}/tests/${name})
  duet_test_properties(${name})
endfunction()

# duet_fake_test(NAME SOURCE): the same, with the fake CUDA; nothing where there is none.
# duet_gpu_test(NAME SOURCE): with the CUDA there is. Both see its headers.
macro(duet_fake_test name source)
  if(DUET_HAVE_FAKE_CUDA)
    duet_folder_test(${name} ${source} _fake)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT FAKE_CUDA_DEVICES=2)
  endif()
endmacro()
macro(duet_gpu_test name source)
  if(DUET_HAVE_CUDA)
    duet_folder_test(${name} ${source} _gpu)
  endif()
endmacro()
# Tests that include the source they test, with some of it replaced, have programs of their own.
macro(duet_folder_test name source kind)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${source} of_its_own REGEX "^#include \"[^\"]*\\.c\"")
  string(REGEX REPLACE "/.*" "" program ${source})
  if(of_its_own)
    set(program ${name})
  endif()
  duet_compiled_test(${name} ${source} ${program}${kind})
endmacro()

function(duet_test_program program)
  get_property(sources GLOBAL PROPERTY duet_${program}_sources)
  get_property(list GLOBAL PROPERTY duet_${program}_list)
  set(main ${PROJECT_BINARY_DIR}/tests/${program}.c)
  file(CONFIGURE OUTPUT ${main} CONTENT "#define TESTS${list}\n#include \"tests/program.h\"\n")
  list(REMOVE_DUPLICATES sources)
  set(target tests-${program})
  add_executable(${target} ${sources} ${main})
  if(program MATCHES "_fake$")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:duet_fake_cuda>)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  # before the folders, of which it needs some
  target_link_libraries(${target} PRIVATE duet_testing)
  if(DUET_HAVE_OPENCL)
    target_link_libraries(${target} PRIVATE OpenCL::OpenCL)
  endif()
  duet_link_folders(${target})
  target_link_libraries(${target} PRIVATE
    PkgConfig::GLIB PkgConfig::JANSSON PkgConfig::LIBXML PkgConfig::ZLIB Threads::Threads m)
  if(program MATCHES "_gpu$")
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
  # assert() is for tests, whatever the build type says; a renamed main needs a prototype
  target_compile_options(${target} PRIVATE -UNDEBUG -include ${PROJECT_SOURCE_DIR}/tests/main.h)
  # Tests themselves are compiled in the least time without optimisation, and run no longer; and
  # sooner where undefined behaviour is looked for in what they test only. Behind all other options.
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O0 -fno-sanitize=undefined)
  target_link_options(${target} PRIVATE $<$<BOOL:${DUET_HAVE_GOLD}>:-fuse-ld=gold>)
  # not the name of the build's folder: builds share what they compile alike
  target_compile_definitions(${target} PRIVATE DUET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/programs)
endfunction()

set(patterns base core platforms sim backends real nodes workloads trace runtime runs openmp quark
  calibrate validate study report cli examples python bench tests)
list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM patterns APPEND /*_test.*)
file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
list(FILTER sources INCLUDE REGEX "_test\\.(c|cpp|f90|py|sh)$")
if(NOT TARGET duet_fortran)
  list(FILTER sources EXCLUDE REGEX "\\.f90$")
endif()
if(DUET_SANITIZE)
  # sanitizers want to be loaded before Python
  list(FILTER sources EXCLUDE REGEX "^(python/|examples/lessons_)")
endif()
set(of_cuda "(^backends/cuda/|/cuda_|/kernels_cuda)[^/]*$")
if(NOT DUET_HAVE_FAKE_CUDA)
  list(FILTER sources EXCLUDE REGEX ${of_cuda})
endif()
list(REMOVE_ITEM sources workloads/kernels_cuda_library_test.c)
if(NOT DUET_HAVE_OPENCL)
  list(FILTER sources EXCLUDE REGEX "^backends/opencl/|/(kernels_)?opencl_[^/]*$")
endif()
if(NOT DUET_HAVE_OPENMP)
  list(FILTER sources EXCLUDE REGEX "^openmp/|/openmp_[^/]*$")
endif()
foreach(source IN LISTS sources)
  string(REGEX REPLACE "_test\\.[a-z0-9]+$" "" name ${source})
  string(REGEX REPLACE "^tests/" "repo/" name ${name})
  string(REPLACE "/" "." name ${name})
  if(NOT name MATCHES "${DUET_TESTS}") # a regular expression, of a build that runs no others
    continue()
  endif()
  if(source MATCHES "\\.py$")
    add_test(NAME ${name} COMMAND ${DUET_PYTHON} ${PROJECT_SOURCE_DIR}/${source})
    duet_test_properties(${name})
  elseif(source MATCHES "\\.sh$")
    add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/${source})
    duet_test_properties(${name})
  elseif(source MATCHES "\\.f90$") # a program of its own, of the public interface
    add_executable(tests-${name} ${source})
    target_link_libraries(tests-${name} PRIVATE duet_flags duet_fortran)
    set_target_properties(tests-${name} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
      Fortran_MODULE_DIRECTORY ${PROJECT_BINARY_DIR}/modules/${name})
    add_custom_target(test-${name} DEPENDS tests-${name})
    add_test(NAME ${name} COMMAND tests-${name})
    duet_test_properties(${name})
  elseif(source MATCHES ${of_cuda})
    duet_fake_test(${name} ${source})
  else()
    duet_folder_test(${name} ${source} "")
  endif()
endforeach()
# both: with the fake, and where there is a GPU on that
duet_fake_test(backends.conformance_fake backends/conformance_test.c)
duet_fake_test(backends.conformance_copies_fake backends/conformance_copies_test.c)
duet_fake_test(backends.conformance_kernels_fake backends/conformance_kernels_test.c)
duet_gpu_test(real.cuda_random_gpu real/cuda_random_test.c)
duet_gpu_test(workloads.kernels_cuda_gpu workloads/kernels_cuda_test.c)
duet_gpu_test(workloads.cuda_run_gpu workloads/cuda_run_test.c)
# NVIDIA's libraries themselves, which need no GPU to be opened
duet_gpu_test(workloads.kernels_cuda_library workloads/kernels_cuda_library_test.c)
foreach(program IN LISTS DUET_TEST_PROGRAMS)
  duet_test_program(${program})
endforeach()

# Programs of QUARK, which see what applications see.
if(TARGET duet_quark)
  add_executable(duet_quark_programs quark/testing_programs.c)
  target_link_libraries(duet_quark_programs PRIVATE duet_flags duet_quark Threads::Threads m)
  set_target_properties(duet_quark_programs PROPERTIES ENABLE_EXPORTS ON
    OUTPUT_NAME quark_programs RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endif()

# What tests start by mpirun, as the command is linked: SimGrid has functions of MPI's names.
if(DUET_HAVE_MPI)
  add_executable(duet_test_ranks nodes/testing_mpi.c nodes/testing_mpi_random.c)
  duet_link_folders(duet_test_ranks MODULES)
  target_link_libraries(duet_test_ranks PRIVATE PkgConfig::GLIB MPI::MPI_C Threads::Threads m)
  target_compile_options(duet_test_ranks PRIVATE -UNDEBUG)
  set_target_properties(duet_test_ranks PROPERTIES
    OUTPUT_NAME ranks RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  file(CREATE_LINK ../modules ${PROJECT_BINARY_DIR}/tests/modules SYMBOLIC)
endif()

# Builds of their own, tested from this one. They use all the cores but now and then: of other tests
# scripts/test runs one beside them. They begin first: later, cores hardly get free at once.
if(NOT DUET_SANITIZE AND NOT DUET_TESTS)
  function(duet_build_test name tests)
    add_test(NAME repo.${name} COMMAND
      sh ${PROJECT_SOURCE_DIR}/tests/subbuild.sh ${PROJECT_BINARY_DIR}/${name} ${tests}
      -DDUET_WERROR=${DUET_WERROR} ${ARGN})
    duet_test_properties(repo.${name})
    set_tests_properties(repo.${name} PROPERTIES
      TIMEOUT 3600 PROCESSORS ${DUET_CORES} COST 1000)
  endfunction()
  # code for GPUs is not run there: for one architecture only, it is compiled a dozen times faster
  set(one_gpu "")
  if(DUET_HAVE_CUDA)
    set(one_gpu -DCMAKE_CUDA_ARCHITECTURES=90)
  endif()
  # all but bench, which runs what others test
  set(others "^(backends|[^b])")
  duet_build_test(sanitize.address "${others}"
    "-DDUET_SANITIZE=address$<SEMICOLON>undefined" ${one_gpu})
  # what has threads; the address sanitizer has seen the rest. Threads of calibrations and of the
  # corpus are those of calibrate.* and of cli.run; other tests of these folders start none of ours
  set(threads "^(backends|real|runtime|examples|quark)[.]|^core[.](modes|random)$")
  set(threads "${threads}|^calibrate[.](bandwidth|copies|costs)$|^cli[.]run$")
  set(threads "${threads}|^workloads[.](cuda_run|fibonacci|kernels_cuda.*|nodes|run|share)$")
  set(threads "${threads}|^nodes[.](hosted|messages|random|refusals)$")
  duet_build_test(sanitize.thread "${threads}"
    -DDUET_SANITIZE=thread ${one_gpu})
  # options in capitals or not
  if(DUET_HAVE_SIMGRID)
    # core and platforms, which know nothing of it (repo.layering), are what they are in this build
    duet_build_test(without_simgrid "^(workloads|sim)[.]" -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
      -DCMAKE_C_FLAGS_DEBUG=${CMAKE_C_FLAGS_DEBUG} -DCMAKE_CXX_FLAGS_DEBUG=${CMAKE_CXX_FLAGS_DEBUG}
      -DDUET_SIMGRID=OFF -DDUET_PLAIN_LINKS=ON ${one_gpu})
  endif()
  # A copy of the sources in which recipes were followed: without CUDA, and optimised as what users
  # build, which scripts/test is not.
  add_test(NAME repo.recipes COMMAND ${DUET_PYTHON} ${PROJECT_SOURCE_DIR}/tests/recipes.py
    ${PROJECT_BINARY_DIR}/recipes "^(backends|real|workloads|core[.]policies[.]conformance)"
    -DDUET_WERROR=${DUET_WERROR} -DDUET_CUDA=off -DDUET_OPENCL=off -DDUET_MPI=off
    -DDUET_PLAIN_LINKS=ON)
  duet_test_properties(repo.recipes)
  set_tests_properties(repo.recipes PROPERTIES
    TIMEOUT 3600 PROCESSORS ${DUET_CORES} COST 1000)
  set_tests_properties(repo.tidy PROPERTIES TIMEOUT 3600 PROCESSORS ${DUET_CORES} COST 1000)
  add_test(NAME repo.docs_bench
    COMMAND ${DUET_PYTHON} ${PROJECT_SOURCE_DIR}/tests/docs_test.py bench/README.md)
  duet_test_properties(repo.docs_bench)
  set_tests_properties(repo.docs PROPERTIES PROCESSORS ${DUET_CORES} COST 1000)
endif()
