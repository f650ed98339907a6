#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which lines of duet's code for NVIDIA GPUs no test on a machine without one executes: builds in a
folder of its own with gcov, runs the tests that use the fake CUDA or CUDA's own libraries, and
lists in markdown what was never executed. The .cu files are compiled there, but the fake computes
in their place: they are listed as a whole.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
CODE = re.compile(r"^(backends/cuda/|workloads/kernels_cuda)[^/]*\.c$")
NOT_CODE = re.compile(r"(_test|_absent|/absent|/testing_[a-z_]*)\.c$")
# of the tests, by name or because they ask for the fake
TESTS = re.compile(r"(^backends\.|cuda)")
OPTIONS = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=--coverage", "-DCMAKE_CXX_FLAGS=--coverage",
           "-DDUET_SIMGRID=OFF", "-DDUET_CUDA=ON", "-G", "Ninja"]


def execute(*command, check=True, **options):
    result = subprocess.run([str(word) for word in command], check=False, text=True, **options)
    if check and result.returncode:
        raise SystemExit(f"gpu_only_lines: {command[0]} failed with status {result.returncode}")
    return result


def asks_for_fake(path):
    return path.suffix == ".py" and "DUET_FAKE_CUDA" in path.read_text(encoding="utf-8")


def tests_of(build):
    """Names of the tests to run."""
    listed = execute("ctest", "--test-dir", build, "--show-only=json-v1",
                     capture_output=True).stdout
    names = [test["name"] for test in json.loads(listed)["tests"]]
    scripts = {str(path.relative_to(SOURCE).with_suffix("")).removesuffix("_test").replace("/", ".")
               for path in SOURCE.glob("*/**/*_test.py") if asks_for_fake(path)}
    # packing copies programs to where gcov would not find its counts
    return [name for name in names if (TESTS.search(name) or name in scripts)
            and not name.startswith(("repo.", "bench.pack"))]


def make(build, jobs):
    execute("cmake", "-S", SOURCE, "-B", build, *OPTIONS, stdout=subprocess.DEVNULL)
    names = tests_of(build)
    known = execute("ninja", "-C", build, "-t", "targets", "all", capture_output=True).stdout
    wanted = [f"test-{name}" for name in names if f"\ntest-{name}: " in known]
    wanted += [name for name in ("duet_command", "duet_fake_command", "bench-cuda_peers_fake",
                                 "bench-cuda_overhead_fake", "bench-cuda_overhead",
                                 "bench-cuda_peers") if f"\n{name}: " in known]
    execute("cmake", "--build", build, "-j", jobs, "--target", *wanted, stdout=subprocess.DEVNULL)
    for counts in build.rglob("*.gcda"):
        counts.unlink()
    expression = "^(" + "|".join(map(re.escape, names)) + ")$"
    result = execute("ctest", "--test-dir", build, "-j", jobs, "-R", expression, check=False,
                     capture_output=True)
    (build / "tests.log").write_text(result.stdout, encoding="utf-8")
    return result.stdout


def counts_of(build):
    """{path: {line: (count, function)}} of the code, added up over all objects."""
    files = {}
    for notes in build.rglob("*.gcno"):
        name = str(notes)
        if "backends/cuda" not in name and "kernels_cuda" not in name:
            continue
        output = execute("gcov", "--json-format", "--stdout", notes.with_suffix(".gcda").name
                         if notes.with_suffix(".gcda").exists() else notes.name,
                         cwd=notes.parent, capture_output=True, check=False).stdout
        for line in output.splitlines():
            if line.startswith("{"):
                add_counts(files, json.loads(line))
    return files


def add_counts(files, report):
    for file in report["files"]:
        path = pathlib.Path(report["current_working_directory"], file["file"])
        try:
            name = str(path.resolve().relative_to(SOURCE))
        except ValueError:
            continue
        if not CODE.match(name) or NOT_CODE.search(name):
            continue
        lines = files.setdefault(name, {})
        for line in file["lines"]:
            count, function = lines.get(line["line_number"], (0, ""))
            lines[line["line_number"]] = (count + line["count"],
                                          line.get("function_name") or function)


def ranges(lines):
    """(first, last, function) of what was never executed; lines without code do not separate."""
    found = []
    open_range = False
    for number in sorted(lines):
        count, function = lines[number]
        if count:
            open_range = False
        elif open_range and found[-1][2] == function:
            found[-1][1] = number
        else:
            found.append([number, number, function])
            open_range = True
    return found


def section(name, lines):
    text = (SOURCE / name).read_text(encoding="utf-8").splitlines()
    missed = [number for number, (count, _) in lines.items() if not count]
    head = f"{name}: {len(lines) - len(missed)} of {len(lines)} lines executed"
    if not missed:
        return head + "\n"
    rows = []
    for first, last, function in ranges(lines):
        where = f"{first}" if first == last else f"{first}-{last}"
        rows.append(f"  {where:<9} {function}: {text[first - 1].strip()}")
    return "\n".join([head, *rows]) + "\n"


def markdown(files, log):
    date = datetime.date.today().isoformat()
    total = sum(len(lines) for lines in files.values())
    missed = sum(count == 0 for lines in files.values() for count, _ in lines.values())
    kernels = sorted(str(path.relative_to(SOURCE)) for folder in ("backends", "workloads")
                     for path in (SOURCE / folder).rglob("*.cu"))
    outcome = [line for line in log.splitlines() if "tests passed" in line]
    failed = re.findall(r"^\s+\d+ - (\S+) \((?!Skipped)", log, re.MULTILINE)
    text = (f"# What only a GPU reaches, {date}\n\n"
            "`bench/gpu_only_lines.py`, on a machine without GPU: lines of `backends/cuda/` and\n"
            f"`workloads/kernels_cuda*.c` that no test executes. {total - missed} of {total} lines "
            f"are\nexecuted ({100 * (total - missed) / total:.1f} %), {missed} are not: beside the "
            "line numbers stand the\nfunction and the first of the lines.\n")
    if outcome:
        which = f" ({', '.join(failed)})" if failed else ""
        text += f"Tests: {outcome[0].strip()}{which}.\n"
    text += "\n```text\n" + "".join(section(name, files[name]) for name in sorted(files)) + "```\n"
    text += ("\nNever run on a GPU here, since the fake CUDA computes in their place: "
             + ", ".join(f"`{name}`" for name in kernels)
             + ";\nnor everything behind the calls: CUDA's runtime and driver, cuBLAS, cuSOLVER, "
             "NVML.\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build-gcov",
                        metavar="FOLDER", help="where to build (default: build-gcov beside bench)")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE.md",
                        help="where the list goes (default: standard output)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="compilers and tests at a time (default %(default)s)")
    parser.add_argument("--keep", action="store_true",
                        help="take the counts that are there, build and run nothing")
    options = parser.parse_args()
    options.build = options.build.resolve()
    log = options.build / "tests.log"
    text = log.read_text(encoding="utf-8") if options.keep else make(options.build, options.jobs)
    files = counts_of(options.build)
    if not files:
        raise SystemExit("gpu_only_lines: gcov reports nothing: was CUDA found?")
    report = markdown(files, text)
    if options.output:
        options.output.write_text(report, encoding="utf-8")
    else:
        sys.stdout.write(report)


if __name__ == "__main__":
    main()
