#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which lines of duet's code for NVIDIA GPUs no test on a machine without one executes: builds in a
# folder of its own with gcov, runs the tests that use the fake CUDA or CUDA's own libraries, and
# prints a table of gcovr's: the lines never executed are at the right. The .cu files are compiled
# there, but the fake computes in their place, and they are not in the table.
#
# Usage: gpu_only_lines.sh [BUILD]      needs gcovr (Debian: apt install gcovr)
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-gcov}

command -v gcovr >/dev/null || { echo "gpu_only_lines: there is no gcovr" >&2; exit 2; }
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDUET_SIMGRID=OFF -DDUET_CUDA=ON \
    -DCMAKE_C_FLAGS=--coverage -DCMAKE_CXX_FLAGS=--coverage >"$build.log"
cmake --build "$build" >>"$build.log"
find "$build" -name '*.gcda' -delete
scripts=$(grep -rl DUET_FAKE_CUDA --include='*_test.py' . | grep -v '^./build' |
    sed 's|^\./||; s|_test\.py$||; s|/|.|g' | paste -s -d '|')
# packing copies programs to where gcov would not find its counts
ctest --test-dir "$build" --parallel "$(nproc)" --tests-regex "(^backends[.]|cuda|^($scripts)\$)" \
    --exclude-regex '^(repo|bench[.]pack)' >>"$build.log" || tail -n 20 "$build.log" >&2
gcovr --root . --object-directory "$build" \
    --filter 'backends/cuda/' --filter 'workloads/kernels_cuda' \
    --exclude '.*(_test|absent|/testing[a-z_]*)\.[ch]$'
