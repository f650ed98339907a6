# SPDX-License-Identifier: Apache-2.0
"""Processes of mpirun: messages arrive, and whatever one of them does, all end."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RANKS = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "tests" / "ranks"
if not RANKS.exists() or not shutil.which("mpirun"):
    print("this build is without MPI, or there is no mpirun here")
    sys.exit(77)
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")
if "ASAN_OPTIONS" in os.environ:  # it looks for leaks before MPI ends; stacks are to be whole
    os.environ["ASAN_OPTIONS"] += ":leak_check_at_exit=0:fast_unwind_on_malloc=0"


def mpirun(count, *words, options=(), more=()):
    ran = subprocess.run(["mpirun", "--timeout", "300", "-n", str(count), *options, RANKS, *words,
                          *more], capture_output=True, text=True, check=False)
    # it says when it is continued, as by scripts/repeat --time quota
    ran.stderr = re.sub(r"mpirun: Forwarding signal \d+ to job\n", "", ran.stderr)
    return ran


# The transport alone.
result = mpirun(3, "messages")
assert result.returncode == 0 and not result.stdout + result.stderr, result

# Random programs, each on a runtime of its own.
for count, first, programs in (2, 0, 3), (3, 3, 3), (4, 6, 6):
    result = mpirun(count, "random", str(first), str(programs))
    assert result.returncode == 0, (result, f"programs from {first} on")

# One node's kernel fails: all say the same of it, and end.
os.environ["DUET_NODES"] = "3"
result = mpirun(3, "program", "right")
assert result.returncode == 0 and not result.stdout + result.stderr, result
result = mpirun(3, "program", "kernel")
lines = result.stdout.splitlines()
assert result.returncode == 1 and len(lines) == 3, result
assert all("this kernel fails" in line for line in lines), result
assert all(line.startswith("node 2: ") for line in lines), result

# One that gives up, and says so, keeps nobody waiting.
result = mpirun(3, "program", "cancel")
lines = result.stdout.splitlines()
assert result.returncode == 1 and len(lines) == 2, result
assert all(line.startswith("node 2: ") for line in lines), result

# A program that has opened MPI closes it, too; it needs threads.
for words in "multiple", "two":
    result = mpirun(3, words)
    assert result.returncode == 0 and not result.stdout + result.stderr, result
result = mpirun(3, "single")
assert result.returncode == 1, result
assert result.stderr.count("MPI was opened for too few threads") == 3, result

# A process that ends in the middle ends all, and it is said which and how.
result = mpirun(3, "program", "exit")
assert result.returncode == 1, result
assert result.stderr.count("duet: node 2: the process ends without duet_close") == 1, result
result = mpirun(3, "program", "abort")
assert result.returncode == 134 and "rank 2" in result.stderr, result

# The first process writes what was asked for of all.
os.environ["DUET_NODES"] = "2"
with tempfile.TemporaryDirectory() as folder:
    trace = pathlib.Path(folder, "trace.json")
    os.environ.update(DUET_TRACE=str(trace), DUET_REPORT="1")
    result = mpirun(2, "program", "right")
    del os.environ["DUET_TRACE"], os.environ["DUET_REPORT"]
    assert result.returncode == 0 and not result.stdout, result
    assert result.stderr.startswith("duet: 50 tasks on ") and result.stderr.count("\n") == 1, result
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event.get("name") == "step" for event in events) == 50, events
    assert [path.name for path in trace.parent.iterdir()] == ["trace.json"]

# What processes were told differently is an error, and keeps nobody waiting.
for first, second, status, said in (("DUET_REPORT=1", "DUET_GPUS=0", 0, "does not come together"),
                                    ("DUET_GPUS=0", "DUET_REPORT=1", 0, "does not come together"),
                                    ("DUET_NODES=3", "DUET_GPUS=0", 1, "3 nodes are wanted"),
                                    ("DUET_POLICY=auto", "DUET_GPUS=0", 1, "policy auto tries")):
    result = mpirun(1, "program", "right", options=("-x", first),
                    more=(":", "-n", "1", "-x", second, RANKS, "program", "right"))
    assert result.returncode == status and said in result.stderr, (first, result)
