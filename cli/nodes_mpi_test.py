# SPDX-License-Identifier: Apache-2.0
"""`mpirun duet run --nodes`: one process speaks for all, and whatever is wrong is said once."""

import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import types

import testing

DUET = os.path.abspath(os.environ.get("DUET") or sys.argv[1])
os.chdir(tempfile.mkdtemp())
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")
SMALL = "cholesky --n 512 --tile 128 --reps 2 --quiet".split()


def said(result):
    """What duet has said, without what mpirun says of it."""
    return [line for line in result.stderr.splitlines() if line.startswith("duet: ")]


def run(*words, ranks=None):
    before = ["mpirun", "--timeout", "300", "-n", str(ranks)] if ranks else []
    return subprocess.run([*before, DUET, "run", *words], capture_output=True, text=True,
                          check=False)


if not shutil.which("mpirun"):
    print("there is no mpirun here")
    sys.exit(77)
alone = run(*SMALL, "--nodes", "2")
assert alone.returncode == 2 and len(said(alone)) == 1 and not alone.stdout, alone
if "built without MPI" in alone.stderr:
    print("this build is without MPI, and says so")
    sys.exit(77)
assert "2 nodes are wanted, and there is 1 process" in alone.stderr, alone

# Results are right, and files are written once, of all nodes.
result = run(*SMALL, "--nodes", "2x2", "--verify", "--json", "--trace", "all.json", ranks=4)
assert result.returncode == 0 and not said(result), result
runs = json.loads(result.stdout)["runs"]
assert [run["tasks"] for run in runs] == [20], runs
assert 0 < runs[0]["bounds_s"]["area"] < runs[0]["makespan_s"]["median"], runs
trace = json.loads(pathlib.Path("all.json").read_text(encoding="utf-8"))
names = {event["args"].get("name") for event in trace["traceEvents"] if event["ph"] == "M"}
assert {f"n{node}.cpu0" for node in range(4)} <= names, names
assert os.listdir(".") == ["all.json"]

# At the pace of a platform, where nothing is computed, as many bytes are sent.
PACED = "cholesky --n 2880 --tile 960 --emulate idgraf --scale 0.1 --reps 1 --quiet --json".split()
result = run(*PACED, "--nodes", "2", ranks=2)
assert result.returncode == 0 and not said(result), result
figures, bounds = (json.loads(result.stdout)["runs"][0][key] for key in ("nodes", "bounds_s"))
assert figures["messages"] > 0 and figures["bytes"] == figures["messages"] * 960 * 960 * 8, figures

# The longest path is the same whatever the nodes, the area shared by twice the workers.
alone = json.loads(run(*PACED).stdout)["runs"][0]["bounds_s"]
assert math.isclose(bounds["critical_path"], alone["critical_path"], rel_tol=1e-9), bounds
assert math.isclose(bounds["area"], alone["area"] / 2, rel_tol=1e-9), bounds

# What is wrong is said by one process.
for ranks, status, words, says in (
        (3, 2, [*SMALL, "--nodes", "2"], "2 nodes are wanted, and there are 3 processes"),
        (2, 2, [*SMALL, "--nodes", "2y"], "--nodes takes a number of nodes"),
        (2, 2, [*SMALL, "--nodes", "2", "--policy", "nobody"], "unknown policy 'nobody'"),
        (2, 2, [*SMALL, "--nodes", "2", "--gpus", "99", "--devices", "opencl"], "99 GPUs are"),
        (2, 2, [*SMALL, "--nodes", "2", "--trace", "nowhere/a.json"], "nowhere/a.json")):
    result = run(*words, ranks=ranks)
    assert result.returncode == status and len(said(result)) == 1, result
    assert says in said(result)[0] and not result.stdout, result


def rank_of(process, number):
    """That rank, once it has opened its runtime."""
    for child in testing.children_of(process):
        environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
        threads = pathlib.Path(f"/proc/{child}/task").glob("*/comm")
        if (re.search(rb"OMPI_COMM_WORLD_RANK=%d\b" % number, environment)
                and "duet-mpi\n" in [thread.read_text(encoding="utf-8") for thread in threads]):
            return child
    return None


# One that is killed ends all; one that is interrupted is named, and what is finished is reported.
for number, status in ((signal.SIGKILL, 137), (signal.SIGINT, 1)):
    with subprocess.Popen(["mpirun", "--timeout", "300", "-n", "3", DUET, "run", *SMALL,
                           "--reps", "100000", "--nodes", "3"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as mpirun:
        found = types.SimpleNamespace(child=None)

        def is_there(process=mpirun, where=found):
            assert process.poll() is None, process.communicate()
            try:
                where.child = rank_of(process, 2)
            except (FileNotFoundError, ProcessLookupError):  # it has just begun, or ended
                return False
            return where.child is not None
        testing.until(is_there)
        os.kill(found.child, number)
        out, err = mpirun.communicate()
    assert mpirun.returncode == status, (mpirun.returncode, out, err)
    if number == signal.SIGKILL:
        assert "rank 2" in err and "signal 9" in err, err
    else:
        assert err.count("duet: ") == 1 and "node 2: the run was cancelled" in err, err
