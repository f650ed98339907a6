# SPDX-License-Identifier: Apache-2.0
# Tests. X/Y_test.c, X/Y_test.cpp, X/Y_test.py and X/Y_test.sh become the test X.Y; those in tests/
# are about the repository as a whole and are called repo.Y. Exit status 77 means skipped. Y ending
# in "_long" gives the label "long": left out under sanitizers.
#
# Tests find in their environment: DUET (the command), DUET_SOURCE_DIR, DUET_BUILD_DIR; the first
# three also are definitions of C and C++ tests, as strings.

find_package(Python3 REQUIRED COMPONENTS Interpreter)
cmake_host_system_information(RESULT DUET_CORES QUERY NUMBER_OF_LOGICAL_CORES)

set(DUET_TEST_ENVIRONMENT
  DUET=${PROJECT_BINARY_DIR}/duet
  DUET_SOURCE_DIR=${PROJECT_SOURCE_DIR}
  DUET_BUILD_DIR=${PROJECT_BINARY_DIR}
  DUET_CC=${CMAKE_C_COMPILER}
  DUET_CXX=${CMAKE_CXX_COMPILER}
  DUET_NM=${CMAKE_NM}
  PYTHONDONTWRITEBYTECODE=1
  PYTHONPATH=${PROJECT_SOURCE_DIR}/tests
  G_DEBUG=fatal-criticals
  LC_ALL=C.UTF-8)
if(DUET_SANITIZE)
  set(suppressions ${PROJECT_SOURCE_DIR}/tests/sanitizers)
  list(APPEND DUET_TEST_ENVIRONMENT
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
    LSAN_OPTIONS=suppressions=${suppressions}/leak.supp:print_suppressions=0
    TSAN_OPTIONS=suppressions=${suppressions}/thread.supp:halt_on_error=1
    UBSAN_OPTIONS=print_stacktrace=1
    G_SLICE=always-malloc)
endif()

# Properties that all tests have.
function(duet_test_properties name)
  set_tests_properties(${name} PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT 300 ENVIRONMENT "${DUET_TEST_ENVIRONMENT}")
  if(name MATCHES "^repo\\.")
    set_tests_properties(${name} PROPERTIES LABELS repo)
  elseif(name MATCHES "_long$")
    set_tests_properties(${name} PROPERTIES LABELS long)
  endif()
endfunction()

set(patterns core platforms sim backends real lib workloads validate cli examples bench tests)
list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM patterns APPEND /*_test.*)
file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
list(FILTER sources INCLUDE REGEX "_test\\.(c|cpp|py|sh)$")
if(NOT DUET_HAVE_SIMGRID)
  list(FILTER sources EXCLUDE REGEX "^sim/")
endif()
foreach(source IN LISTS sources)
  string(REGEX REPLACE "_test\\.[a-z]+$" "" name ${source})
  string(REGEX REPLACE "^tests/" "repo/" name ${name})
  string(REPLACE "/" "." name ${name})
  if(source MATCHES "\\.py$")
    add_test(NAME ${name} COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/${source})
  elseif(source MATCHES "\\.sh$")
    add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/${source})
  else()
    set(target test-${name})
    add_executable(${target} ${source})
    duet_link_folders(${target})
    target_link_libraries(${target} PRIVATE
      PkgConfig::GLIB PkgConfig::LIBXML Threads::Threads m)
    # assert() is for tests, whatever the build type says.
    target_compile_options(${target} PRIVATE -UNDEBUG)
    target_compile_definitions(${target} PRIVATE
      DUET_COMMAND="${PROJECT_BINARY_DIR}/duet"
      DUET_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
      DUET_BUILD_DIR="${PROJECT_BINARY_DIR}")
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${target})
  endif()
  duet_test_properties(${name})
endforeach()

# Builds of their own, tested from this one. They use all the cores, so nothing runs beside them.
if(NOT DUET_SANITIZE)
  function(duet_build_test name tests)
    add_test(NAME repo.${name} COMMAND
      sh ${PROJECT_SOURCE_DIR}/tests/subbuild.sh ${PROJECT_BINARY_DIR}/${name} ${tests} ${ARGN})
    duet_test_properties(repo.${name})
    set_tests_properties(repo.${name} PROPERTIES TIMEOUT 1200 PROCESSORS ${DUET_CORES})
  endfunction()
  duet_build_test(sanitize.address . "-DDUET_SANITIZE=address$<SEMICOLON>undefined")
  duet_build_test(sanitize.thread . -DDUET_SANITIZE=thread)
  if(DUET_HAVE_SIMGRID)
    duet_build_test(without_simgrid "^(core|platforms|workloads)[.]" -DDUET_SIMGRID=OFF)
  endif()
  if(TEST repo.tidy)
    set_tests_properties(repo.tidy PROPERTIES TIMEOUT 900 PROCESSORS ${DUET_CORES})
  endif()
endif()
