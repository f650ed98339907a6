# SPDX-License-Identifier: Apache-2.0
"""The overhead benchmarks at tiny sizes: every program verifies what its tasks did, the driver's
table and JSON have the rows that they should. No time is looked at."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from repository import BUILD, ROOT, skip

SIZES = {"independent": 100, "fork_join": 50, "sizes": 100, "chain": 100, "cholesky": 5,
         "fibonacci": 6, "fibonacci_wait": 6, "reduction": 1000, "stencil": 4}
UNITS = {"independent": {"ns/task"}, "fork_join": {"ns/join"}, "sizes": {"ns/task"},
         "chain": {"ns/task"}, "cholesky": {"ns/task"},
         "fibonacci": {"ns/task", "Tp/Tserial"}, "fibonacci_wait": {"ns/task", "Tp/Tserial"},
         "reduction": {"us/sum"}, "stencil": {"ns"}}
CASES = {"fork_join": {1, 10, 100, 1000}, "sizes": {1, 10000, 100}, "reduction": {2, 16, 128}}
WITHOUT_STARPU = {"fibonacci_wait", "reduction"}
# threads of the others are not instrumented, and their memory is theirs
SANITIZED = "TSAN_OPTIONS" in os.environ
PEERS = ["duet"] if SANITIZED else ["duet", "libgomp", "libomp", "libgomp-on-duet",
                                         "libomp-on-duet", "starpu-lws"]


def program(name, *arguments):
    return subprocess.run([BUILD / "bench" / f"overhead_{name}", *map(str, arguments)],
                          capture_output=True, text=True, timeout=600, check=False)


def driver(*arguments):
    return subprocess.run([sys.executable, ROOT / "bench" / "overhead.py", "--build", BUILD,
                           *map(str, arguments)],
                          capture_output=True, text=True, timeout=600, check=False)


def check_driver():
    """One row for each benchmark, case, unit, number of workers and peer; those of duet have
    ratio 1."""
    sizes = itertools.chain.from_iterable(
        ("--size", f"{name}={size}") for name, size in SIZES.items() if name != "stencil")
    chosen = ",".join(name for name in SIZES if name != "stencil")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "overhead.json"
        result = driver("--runs", 1, "--repeats", 1, "--peers", ",".join(PEERS), "--benchmarks",
                        chosen, "--json", path, *sizes)
        assert result.returncode == 0, result
        report = json.loads(path.read_text(encoding="utf-8"))
    assert report["runs"] == 1 and "duet" not in report["missing"], report
    there = [peer for peer in PEERS if peer not in report["missing"]]
    expected = {(name, case, workers, unit, peer)
                for name in SIZES if name != "stencil" for case in CASES.get(name, {0})
                for workers in (1, 2) for unit in UNITS[name] for peer in there
                if name not in WITHOUT_STARPU or not peer.startswith("starpu")}
    found = [(row["benchmark"], row["case"], row["workers"], row["unit"], row["peer"])
             for row in report["rows"]]
    assert len(found) == len(set(found)) and set(found) == expected, expected ^ set(found)
    for row in report["rows"]:
        assert 0 < row["least"] == row["median"] == row["most"], row
        assert row["ratio"] == 1 if row["peer"] == "duet" else row["ratio"] > 0, row
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["benchmark", "case", "workers", "unit", "peer", "median", "least",
                                "most", "ratio"], lines[0]
    assert len(lines) == 1 + len(expected) + bool(report["missing"]), result.stdout
    if report["missing"]:
        assert all(peer in lines[-1] for peer in report["missing"]), lines[-1]


def check_programs():
    """Repeats are printed, the one that warms up is not; bad usage is status 2."""
    result = program("duet", "stencil", 2, 2, SIZES["stencil"])
    assert result.returncode == 0, result
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(printed) == 2, printed
    # null on a machine so busy that half of the time is never the tasks'
    assert all(row["value"] is None or row["value"] > 0 for row in printed), printed
    for benchmark in "again", "graph":
        result = program("duet", benchmark, 2, 1, 20)
        assert result.returncode == 0 and json.loads(result.stdout)["value"] > 0, result
    for arguments in [], ["nothing"], ["chain", 0], ["chain", 1, 0], ["chain", 1, 1, 64, 1]:
        result = program("duet", *arguments)
        assert result.returncode == 2 and "usage" in result.stderr, (arguments, result)
    assert driver("--peers", "nobody").returncode == 2
    assert driver("--benchmarks", "chains").returncode == 2


if not (BUILD / "bench" / "overhead_duet").exists():
    skip("bench/overhead_duet is not built")
check_programs()
check_driver()
