#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages: built, unpacked where nothing else is, and used as an application would, with
# find_package and with pkg-config; what they depend on is what they open.
set -eu
for tool in cmake cpack dpkg-deb dpkg-shlibdeps file pkg-config; do
    command -v "$tool" >/dev/null || exit 77
done
[ -z "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ] || exit 77 # such a build is nobody's package
[ -f "$DUET_BUILD_DIR/libduet.so" ] || exit 77
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

fail() {
    echo "package: $*" >&2
    [ ! -f "$place/log" ] || cat "$place/log" >&2
    exit 1
}

run() {
    "$@" >"$place/log" 2>&1 || fail "$* failed"
}

run cpack --config "$DUET_BUILD_DIR/CPackConfig.cmake" -G DEB -B "$place/packages"
for package in "$place"/packages/*.deb; do
    run dpkg-deb --extract "$package" "$place/root"
done
prefix=$place/root/usr
library=$(dirname "$(find "$prefix" -name libduet.so)")
depends() {
    dpkg-deb --field "$place/packages/$1"_*.deb Depends
}
depends libduet-dev | grep -q '^libduet0 (= [0-9.]*)$' ||
    fail "libduet-dev needs $(depends libduet-dev)"
depends duet | grep -q 'libduet0 (= ' || fail "duet needs $(depends duet)"
! depends libduet0 | grep -q 'openblas\|ns3' || fail "libduet0 needs $(depends libduet0)"

# the command, with what it opens
"$prefix/bin/duet" list platforms | grep -q '^idgraf' || fail "duet finds no platforms"
workload=jacobi2d
[ ! -f "$library/duet/libduet-blas.so" ] || workload=gemm
for engine in fluid simgrid; do
    [ $engine = fluid ] || [ -f "$library/duet/libduet-simgrid.so" ] ||
        continue
    run "$prefix/bin/duet" simulate gemm --n 1920 --tile 960 --platform idgraf --quiet \
        --network-engine $engine
done
run "$prefix/bin/duet" run $workload --n 64 --tile 32 --cpus 1 --gpus 0 --verify --quiet

for page in duet duet-simulate duet-run duet-platform; do
    [ -s "$prefix/share/man/man1/$page.1" ] || fail "there is no manual page of $page"
done
[ -s "$prefix/share/bash-completion/completions/duet" ] || fail "there is no completion"

# an application, by both ways
try() {
    LD_LIBRARY_PATH=$library DUET_SIMULATE=idgraf "$1" >"$place/log" 2>&1 || fail "$1 failed"
}
mkdir "$place/application"
cp "$DUET_SOURCE_DIR/examples/tiled_cholesky.c" "$place/application/main.c"
cp "$DUET_SOURCE_DIR/examples/tiled_cholesky.cpp" "$place/application/main.cpp"
cp "$DUET_SOURCE_DIR/examples/tiled_cholesky.f90" "$place/application/main.f90"
cp "$DUET_SOURCE_DIR/quark/testing_programs.c" "$place/application/quark.c"
cat >"$place/application/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.24)
project(application LANGUAGES C CXX)
set(CMAKE_C_STANDARD 11)
find_package(duet 0.2 REQUIRED COMPONENTS cxx python)
if(NOT EXISTS ${duet_PYTHON_PATH}/duet)
  message(FATAL_ERROR "no package for Python in ${duet_PYTHON_PATH}")
endif()
add_executable(application main.c)
target_link_libraries(application PRIVATE duet::duet m)
add_executable(application_cpp main.cpp)
target_link_libraries(application_cpp PRIVATE duet::cxx)
find_package(Threads)
add_executable(application_quark quark.c)
target_link_libraries(application_quark PRIVATE duet::quark Threads::Threads m)
find_package(duet OPTIONAL_COMPONENTS fortran ada)
if(NOT duet_FOUND OR duet_fortran_FOUND OR duet_ada_FOUND)
  message(FATAL_ERROR "optional components that are not there")
endif()
find_package(duet COMPONENTS ada)
if(duet_FOUND OR NOT duet_NOT_FOUND_MESSAGE MATCHES "there are cxx, fortran and python")
  message(FATAL_ERROR "a component that is not there: ${duet_NOT_FOUND_MESSAGE}")
endif()
include(CheckLanguage)
check_language(Fortran)
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
  find_package(duet REQUIRED COMPONENTS fortran)
  foreach(name IN ITEMS application_f90 another_f90) # each of which uses the module
    add_executable(${name} main.f90)
    target_link_libraries(${name} PRIVATE duet::fortran openblas)
    set_target_properties(${name} PROPERTIES Fortran_MODULE_DIRECTORY of_${name})
  endforeach()
endif()
END
run cmake -S "$place/application" -B "$place/build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$DUET_CC" -DCMAKE_CXX_COMPILER="$DUET_CXX"
run cmake --build "$place/build"
try "$place/build/application"
try "$place/build/application_cpp"
LD_LIBRARY_PATH=$library run "$place/build/application_quark" cholesky 2
[ ! -f "$place/build/another_f90" ] || try "$place/build/another_f90"

PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words
run "$DUET_CC" -std=c11 -D_XOPEN_SOURCE=700 -o "$place/other" "$place/application/main.c" \
    $(pkg-config --cflags --libs duet) -lm
try "$place/other"
