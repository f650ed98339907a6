# SPDX-License-Identifier: Apache-2.0
"""OpenMP programs run on duet as on the library of their compiler.

testing_gomp.c checks each construct itself, and examples/openmp/tasks.c what it has computed. They
are linked with libduet-gomp.so in front of that library, as sanitizers want it, or run by `duet
openmp`, which preloads it.
"""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import repository

DUET = os.environ["DUET"]
LIBRARY = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "modules" / "libduet-gomp.so"
SANITIZE = [one for one in os.environ.get("DUET_SANITIZE", "").split(",") if one]
COMPILERS = [name for name in ("gcc", "clang")  # a sanitizer is that of the library's compiler
             if name == "gcc" or (shutil.which(name) and not SANITIZE)]
THREADS = (1, 2, 3, 8)  # more than this machine may have cores, too
PROGRAMS = ("cholesky 6 16", "sparse-lu 6 8", "jacobi 6 8", "strassen 64 16", "sort 20000 300",
            "queens 8 4")


class Failed(Exception):
    pass


def check(good, *what):
    if not good:
        raise Failed(*what)


def build(folder, source, linked=True, compiler="gcc"):
    program = str(folder / f"{pathlib.Path(source).stem}-{compiler}")
    flags = [f"-fsanitize={','.join(SANITIZE)}"] if SANITIZE else []
    library = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"] if linked else []
    subprocess.run([compiler, "-O1", "-g", *flags, "-Wno-unknown-pragmas", "-fopenmp",
                    str(repository.ROOT / source), "-o", program, *library, "-lm"], check=True)
    return program


def run(*command, threads=2, status=0, leaks=False, **environment):
    env = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if not leaks:  # those of programs are their own
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    env |= {name: str(value) for name, value in environment.items()}
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True)
    check(done.returncode == status, command, threads, environment, done)
    return done


def test_constructs(folder, compiler):
    program = build(folder, "openmp/testing_gomp.c", compiler=compiler)
    for threads in THREADS:
        for cancellation in ("false", "true"):
            done = run(program, threads=threads, leaks=True, OMP_CANCELLATION=cancellation)
            check(done.stdout == "right\n" and not done.stderr, threads, done)
    for policy in ("eager", "heft", "dmdas", "locality-aware", "no-prio"):
        run(program, threads=3, DUET_POLICY=policy)
    run(program, threads=3, OMP_MAX_TASK_PRIORITY=2, OMP_WAIT_POLICY="passive",
        OMP_PROC_BIND="true", OMP_SCHEDULE="guided,2", OMP_STACKSIZE="4M")


def test_programs(folder, compiler):
    program = build(folder, "examples/openmp/tasks.c", compiler=compiler)
    for line in PROGRAMS:
        for threads in THREADS:
            done = run(program, *line.split(), threads=threads)
            check("right" in done.stdout, line, threads, done)


def test_command(folder, compiler):
    """What duet has works on such a program: trace, explanation, policy, calibration, report."""
    program = build(folder, "examples/openmp/tasks.c", linked=False, compiler=compiler)
    trace, times = folder / "trace.json", folder / "mine.json"
    done = run(DUET, "openmp", "--threads", 2, "--policy", "heft", "--report", "--trace", trace,
               "--", program, "cholesky", 6, 16)
    check("right" in done.stdout and "policy heft" in done.stderr, done)
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]
             if event.get("cat") == "kernel"}
    check(any(name.startswith("tasks.c:") for name in names), names)
    check(any(name.startswith("parallel:tasks.c:") for name in names), names)
    done = run(DUET, "explain", trace)
    check("tasks.c:" in done.stdout, done)
    run(DUET, "openmp", "--calibrate", times, "--", program, "queens", 8, 4)
    check("tasks.c:" in times.read_text())
    done = run(DUET, "openmp", "--", folder / "absent", status=2)
    check("absent" in done.stderr and done.stderr.count("\n") == 1, done)
    run(DUET, "openmp", status=2)


# What gcc's library does as well beside duet: memory, devices, time, OpenACC.
LEFT = re.compile(r"(GOMP_(alloc|free|error|warning|offload|PLUGIN|[0-9])|OMP_[0-9]"
                  r"|omp_(target_|get_wti|.*alloc|free|.*default_device|.*num_devices"
                  r"|.*device_num|.*initial_device)|GOACC|goacc|acc_|OACC_)")


def test_names(folder, compiler):
    """Every function of gcc's library is duet's, but those that need none of its threads."""
    def names(library):
        lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        return {line.split()[-1].partition("@")[0] for line in lines}

    path = subprocess.run(["gcc", "-print-file-name=libgomp.so.1"], check=True,
                          capture_output=True, text=True).stdout.strip()
    left = {name for name in names(path) - names(LIBRARY) if not LEFT.match(name)}
    check(not left, left)


HOSTILE = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void GOMP_parallel_end(void);

static void regions(void)
{
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum++;
    if (sum != omp_get_max_threads())
        _exit(9);
}

int main(int argc, char **argv)
{
    int status = 0;
    regions();
    if (!strcmp(argv[1], "old"))
        GOMP_parallel_end();
    if (!strcmp(argv[1], "exit")) {
#pragma omp parallel
#pragma omp masked
        exit(5);
    }
    if (!strcmp(argv[1], "fork")) {
        if (fork() == 0) {
            regions();
            exit(6);
        }
        wait(&status);
        regions();
        return WEXITSTATUS(status);
    }
    if (!strcmp(argv[1], "lock")) {
        omp_lock_t lock;
        omp_init_lock(&lock);
        omp_set_lock(&lock);
        omp_set_lock(&lock);
    }
    return 0;
}
"""


def test_refused(folder, compiler):
    """What is wrong, or not there, ends a program with one line that names it."""
    source = folder / "hostile.c"
    source.write_text(HOSTILE)
    program = build(folder, source, compiler=compiler)
    run(program, "exit", status=5)
    run(program, "fork", status=6)
    for argument, name in (("old", "GOMP_parallel_end"), ("lock", "a lock")):
        done = run(program, argument, status=2)
        check(name in done.stderr and done.stderr.count("\n") == 1, done)
    for name, value in (("OMP_NUM_THREADS", "two"), ("OMP_SCHEDULE", "static,x"),
                        ("OMP_NUM_THREADS", "2,x"), ("OMP_SCHEDULE", "fast"),
                        ("OMP_PROC_BIND", "perhaps"),
                        ("OMP_STACKSIZE", "12q"), ("OMP_DYNAMIC", "maybe"),
                        ("OMP_WAIT_POLICY", "busy"), ("OMP_CANCELLATION", "2"),
                        ("DUET_SIMULATE", "idgraf"), ("DUET_POLICY", "nothing")):
        done = run(program, "none", status=2, **{name: value})
        key = value if name == "DUET_POLICY" else name
        # gcc's library, which is loaded as well, says it in words of its own
        lines = [line for line in done.stderr.splitlines() if line and "libgomp:" not in line]
        check(len(lines) == 1 and key in lines[0], name, value, done)
    shown = run(program, "none", OMP_DISPLAY_ENV="true").stderr
    check("OMP_NUM_THREADS = '2'" in shown, shown)


def main():
    if SANITIZE == ["thread"]:  # a child of several threads would start more
        tests = [test_constructs, test_programs]
    elif SANITIZE:
        tests = [test_constructs, test_programs, test_refused]
    else:
        tests = [test_constructs, test_programs, test_command, test_names, test_refused]
    failed = 0
    for test, compiler in itertools.product(tests, COMPILERS):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder), compiler)
            except Failed as error:
                failed += 1
                print(f"{test.__name__} {compiler}:", *error.args, file=sys.stderr)
    print(f"{len(tests) * len(COMPILERS) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


main()
