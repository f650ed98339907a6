#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Another build of duet, configured otherwise, and its tests; silent but for a summary unless
# something fails. Called by ctest: subbuild.sh DIRECTORY TESTS-REGEX CMAKE-ARGUMENT...
set -eu
build=$1
tests=$2
shift 2
jobs=$(nproc)
at_once=$((jobs + 1)) # tests wait for something now and then

# Sanitizers want their shadow memory where address space randomisation may put something else.
run=
if command -v setarch >/dev/null 2>&1 && setarch -R true 2>/dev/null; then
    run='setarch -R'
fi

everything()
{
    cmake -S "$DUET_SOURCE_DIR" -B "$build" -G Ninja "-DDUET_TESTS=$tests" "$@" &&
        cmake --build "$build" --parallel "$jobs" &&
        $run ctest --test-dir "$build" --parallel "$at_once" --output-on-failure --no-tests=ignore \
            --tests-regex "$tests" --label-exclude 'repo|long'
}

mkdir -p "$build"
if everything "$@" >"$build/log.txt" 2>&1; then
    tail -n 3 "$build/log.txt"
else
    echo "$build/log.txt, without what went well, ends with:"
    grep -Ev '^-- |^\[[0-9]+/[0-9]+\]|^ +Start +[0-9]+:|^ *[0-9]+/[0-9]+ Test .*(Passed|Skipped) ' \
        "$build/log.txt" | tail -n 300
    exit 1
fi
