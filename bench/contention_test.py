# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the core on many threads at tiny sizes. It is built here, as nothing else needs
it. Counts of logical threads are exact: the same at every run, and none for one thread. No time is
looked at."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from repository import BUILD, ROOT, skip

GRAPHS = {"independent": 200, "fork_join": 200, "cholesky": 6, "nested": 6}
TASKS = {"independent": 200, "fork_join": 200, "cholesky": 56, "nested": 127}


def program(name, *arguments):
    return subprocess.run([BUILD / "bench" / name, *map(str, arguments)], capture_output=True,
                          text=True, timeout=600, check=False)


def driver(folder, *arguments):
    path = folder / "report.json"
    sizes = [word for name, size in GRAPHS.items() for word in ("--size", f"{name}={size}")]
    result = subprocess.run([sys.executable, ROOT / "bench" / "contention.py", "--build", BUILD,
                             "--json", path, *sizes, *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        assert row["tasks"] == TASKS[row["graph"]], row
        assert row["accesses"] > 20 and row["contended"] <= row["moves"], row
        assert (row["moves"] > 0) == (row["threads"] > 1), row
        # a thread's tasks take the kernels' time, here not less than nine tenths of what is asked
        assert row["ns"] > 0.9 * row["kernel_ns"] and 0 <= row["efficiency"] < 1.1, row
    return result.stdout, rows


def check_counts(folder):
    _, rows = driver(folder, "--threads", "1,64")
    assert len(rows) == 2 * len(GRAPHS)
    assert driver(folder, "--threads", 64, "--graphs", "nested")[1] == rows[-1:]


def check_top(folder):
    """Instructions are named, and the counters that all tasks share are among them."""
    text, _ = driver(folder, "--graphs", "independent", "--threads", 8, "--top", 100,
                     "--policies", "eager", "--kernels", 0)
    assert "core/submit.c" in text and "core/list.c" in text, text


def check_measured(folder):
    """The same tasks run on threads of the system, far more than there are cores."""
    _, rows = driver(folder, "--threads", "1,40", "--kernels", 100, "--measure", "--repeats", 1,
                     "--graphs", "nested")
    assert all(row["measured_ns"] > 0 for row in rows), rows
    assert all(row["real_moves"] == 0 for row in rows if row["threads"] == 1), rows


if "TSAN_OPTIONS" in os.environ:
    skip("what a sanitizer adds is not to be counted")
with tempfile.TemporaryDirectory() as name:
    check_counts(pathlib.Path(name))
    check_top(pathlib.Path(name))
    check_measured(pathlib.Path(name))
for wrong in ([], ["nothing"], ["nested", "--threads"], ["nested", "--threads", 257],
              ["nested", "--costs", "1,2"]):
    assert program("contention", *wrong).returncode == 2, wrong
