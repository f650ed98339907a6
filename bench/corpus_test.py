# SPDX-License-Identifier: Apache-2.0
"""A tiny corpus is recorded and compared: every model predicts every case, the same every time."""

import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from repository import BUILD, ROOT, skip

CASES = ["cholesky:256:64:1:ws", "cholesky:320:64:1:ws", "saxpy:16384:8192:1:ws"]


def corpus(*arguments, status=0):
    result = subprocess.run([sys.executable, ROOT / "bench" / "corpus.py", *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    assert result.returncode == status, result
    return result.stdout


def compare(path, *arguments, status=0):
    """Runs the program by itself, on lines of a file."""
    with open(path, "rb") as lines:
        program = [BUILD / "bench" / "corpus", "compare", "1", *arguments]
        result = subprocess.run(program, stdin=lines,
                                capture_output=True, text=True, check=False)
    assert result.returncode == status, result
    return result.stderr if status else result.stdout


def check_bad_lines(folder, lines):
    """A line that is no part of a corpus is reported with line and place."""
    bad = folder / "bad.jsonl"
    for number, change, message in [
            (1, ("shared_bytes", "x"), "line 1: shared_bytes: missing"),
            (2, ('"n":256', '"n":-1'), "line 2: n: -1"),
            (3, ('"cpus":1', '"cpus":1000'), "line 3: cpus: 1000"),
            (3, ('"tasks":[0,0', '"tasks":[0,7'), "line 3: tasks[0]: no such task or worker"),
            (3, ('"n":256', '"n":257'), "line 3: a run of a problem that no line above describes"),
            (3, ("{", "["), "line 3:1: "),
    ]:
        changed = list(lines)
        assert change[0] in changed[number - 1], (number, change)
        changed[number - 1] = changed[number - 1].replace(*change, 1)
        bad.write_text("".join(changed), encoding="utf-8")
        text = compare(bad, folder / "here.json", "cholesky", status=1)
        assert text.startswith("corpus: " + message), (message, text)


def check_coverage(folder):
    """Each case that was left out has the intervals of a run and of a median, and is counted."""
    command = [sys.executable, ROOT / "bench" / "coverage.py", "--build", BUILD, "--simulations",
               "19", "--save", folder / "cases.json", folder / "here.jsonl.gz"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    assert len(cases) == 2 + 2 * len(CASES) + 2 + 2 * len(CASES), cases  # case, half, size, turn
    for case in cases:
        assert all(0 < low < high for low, high in (case["run"], case["median"])), case
    lines = text.splitlines()
    assert lines[1].split()[0] == "all" and lines[1].split()[4] == str(len(cases)), text


def main():
    if not (BUILD / "bench" / "corpus").exists():
        skip("bench/corpus is not built")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        corpus("record", "--build", BUILD, "--rounds", 2, "--budget", "0.1s", "--name", "here",
               "--folder", folder, "--cases", *CASES)
        with gzip.open(folder / "here.jsonl.gz", "rt") as packed:
            lines = packed.readlines()
        runs = [json.loads(line) for line in lines if line.startswith('{"run"')]
        assert {run["round"] for run in runs} == {0, 1} and all(run["tasks"] for run in runs)
        assert [run["run"] for run in runs if run["round"] == 1][0] == "saxpy"  # backward
        corpus("compare", "--build", BUILD, "--simulations", 1, "--out", folder / "all.jsonl",
               folder / "here.jsonl.gz")
        every = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
        again = folder / "again.jsonl"
        again.write_text("".join(lines), encoding="utf-8")
        again = compare(again, folder / "here.json", "saxpy").splitlines()
        assert list(map(json.loads, again)) == [of for of in every if of["workload"] == "saxpy"]
        models = {line["model"] for line in every}
        assert {"model", "table", "mean"} <= models
        for scheme, times in [("none", 1), ("case", 1), ("turn", 2)]:
            of = [line for line in every if line["scheme"] == scheme]
            count = len(CASES) if scheme != "case" else 2  # saxpy has but one
            assert len(of) == len(models) * times * count, (scheme, len(of))
            assert all(math.isfinite(line[level]) for line in of
                       for level in ("kernel_error", "makespan_error")), of
        assert "turns ago" in corpus("states", folder / "here.jsonl.gz")
        check_coverage(folder)
        check_bad_lines(folder, lines)


main()
