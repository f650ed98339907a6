# SPDX-License-Identifier: Apache-2.0
"""`mpirun duet run --nodes`: results are right, one process speaks for all, what it writes is of
all nodes, and whatever is wrong is said once. All workloads on several nodes in one process are in
workloads/nodes_test.c, what happens when something fails in nodes/mpi_test.py."""

import contextlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import types

import testing
from testing import DUET, duet, mpirun

os.chdir(tempfile.mkdtemp())
SMALL = "cholesky --n 512 --tile 128 --reps 2 --quiet".split()
RUNS = [("2x2", "cholesky --n 200 --tile 32"),
        ("1x2", "lu --n 200 --tile 48 --precision s --param layout=lapack"),
        ("2x1", "qr --n 200 --tile 32 --emulate free --gpus 1"),
        ("1x3", "gemm --n 150 --tile 48 --param m=60"),
        ("2", "jacobi2d --n 100 --tile 24 --param iterations=7"),
        ("2", "jacobi2d --n 100 --tile 24 --param iterations=7 --param submit=graph")]


testing.need_mpirun()
alone = duet("run", *SMALL, "--nodes", "2", status=2)
assert len(testing.said(alone.stderr)) == 1 and not alone.stdout, alone
testing.need_mpi(alone.stderr)
assert "2 nodes are wanted, and there is 1 process" in alone.stderr, alone

for nodes, words in RUNS:
    rows, cols = (*map(int, nodes.split("x")), 1)[:2]
    result = mpirun(rows * cols, "run", *words.split(), "--nodes", nodes, "--cpus", "1", "--reps",
                    "2", "--warmup", "0", "--verify", "--quiet")
    if "without BLAS" in result.stderr:
        continue
    assert result.returncode == 0, (nodes, words, result)
    assert len(re.findall(r"passed in all 2 runs$", result.stdout, re.M)) == 1, (words, result)

# Files are written once, of all nodes.
result = mpirun(4, "run", *SMALL, "--cpus", "1", "--nodes", "2x2", "--verify", "--json", "--trace",
                "all.json", "--html", "all.html", status=0)
assert not testing.said(result.stderr), result
[figures] = json.loads(result.stdout)["runs"]
assert 0 < figures["bounds_s"]["area"] < figures["makespan_s"]["median"], figures
assert figures["verification"]["passed"] and figures["tasks"] == 20, figures
assert figures["settings"] == "nodes=2x2" and figures["nodes"]["count"] == 4, figures
assert sorted(os.listdir(".")) == ["all.html", "all.json"]
events = json.loads(pathlib.Path("all.json").read_text(encoding="utf-8"))["traceEvents"]
kernels = [event for event in events if event.get("cat") == "kernel"]
assert sorted(event["args"]["task"] for event in kernels) == list(range(1, 21))
assert len({event["pid"] for event in kernels}) == 4
messages = [event for event in events if event.get("cat") == "copy"]
assert len(messages) == figures["nodes"]["messages"] > 0
assert sum(event["args"]["bytes"] for event in messages) == figures["nodes"]["bytes"]
for message in messages:  # what comes is read there
    data, (source, node) = message["args"]["handle"], re.findall(r"n(\d)\.host", message["name"])
    assert source != node and any(
        event["pid"] == 1 + int(node) and data in [used[0] for used in event["args"]["accesses"]]
        for event in kernels), message
shown = pathlib.Path("all.html").read_text(encoding="utf-8")
assert "n3.cpu0" in shown and "n3.host" in shown
why = json.loads(duet("explain", "all.json", "--json", "--no-what-if", status=0).stdout)
assert abs(sum(part["seconds"] for part in why["path"]["parts"]) - why["makespan_s"]) < 1e-6

# At the pace of a platform, where nothing is computed, as many bytes are sent.
PACED = "cholesky --n 2880 --tile 960 --emulate idgraf --scale 0.1 --reps 1 --quiet --json".split()
result = mpirun(2, "run", *PACED, "--nodes", "2", status=0)
assert not testing.said(result.stderr), result
figures, bounds = (json.loads(result.stdout)["runs"][0][key] for key in ("nodes", "bounds_s"))
assert figures["messages"] > 0 and figures["bytes"] == figures["messages"] * 960 * 960 * 8, figures

# The longest path is the same whatever the nodes, the area shared by twice the workers.
alone = json.loads(duet("run", *PACED, status=0).stdout)["runs"][0]["bounds_s"]
assert math.isclose(bounds["critical_path"], alone["critical_path"], rel_tol=1e-9), bounds
assert math.isclose(bounds["area"], alone["area"] / 2, rel_tol=1e-9), bounds

# A validation predicts and measures the same nodes, and knows of messages; what the processes would
# have to agree on is refused.
VALIDATE = ("cholesky --emulate idgraf --scale 0.1 --n 3840 --cpus 1 --gpus 2 --nodes 2 --network "
            "switch:10Gbps,5us").split()
result = mpirun(2, "validate", *VALIDATE, "--reps", "2", "--json", status=0)
[case] = json.loads(result.stdout)["cases"]
assert case["settings"] == "nodes=1x2" and len(case["measured"]["makespans_s"]) == 2, case
assert "message" in [part["reason"] for part in case["explanation"]["parts"]], case
result = mpirun(2, "validate", *VALIDATE, "--until", "1%", status=2)
assert "--until is for one node" in result.stderr, result

# What is wrong is said by one process.
for ranks, status, words, says in (
        (3, 2, [*SMALL, "--nodes", "2"], "2 nodes are wanted, and there are 3 processes"),
        (2, 2, ["fibonacci", "--n", "20", "--nodes", "2"], "has no data that could be dealt out"),
        (2, 2, [*SMALL, "--nodes", "2", "--reps", "1", "--cpus", "1,2"], "are no table"),
        (2, 2, [*SMALL, "--nodes", "2y"], "--nodes takes a number of nodes"),
        (2, 2, [*SMALL, "--nodes", "2", "--policy", "nobody"], "unknown policy 'nobody'"),
        (2, 2, [*SMALL, "--nodes", "2", "--gpus", "99", "--devices", "opencl"], "99 GPUs are"),
        (2, 2, [*SMALL, "--nodes", "2", "--trace", "nowhere/a.json"], "nowhere/a.json")):
    result = mpirun(ranks, "run", *words, status=status)
    assert len(testing.said(result.stderr)) == 1, result
    assert says in testing.said(result.stderr)[0] and not result.stdout, result


def rank_of(process, number):
    """That rank, once it has opened its runtime."""
    for child in testing.children_of(process):
        environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
        threads = pathlib.Path(f"/proc/{child}/task").glob("*/comm")
        if (re.search(rb"OMPI_COMM_WORLD_RANK=%d\b" % number, environment)
                and "duet-mpi\n" in [thread.read_text(encoding="utf-8") for thread in threads]):
            return child
    return None


# One that is killed ends all; of one that is interrupted, too, what is finished is reported, and
# no other policy is begun.
for number, status in ((signal.SIGKILL, 137), (signal.SIGINT, 130)):
    with subprocess.Popen(["mpirun", "-n", "3", DUET, "run", *SMALL, "--reps", "100000", "--nodes",
                           "3", "--policy", "ws,eager"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as run:
        found = types.SimpleNamespace(first=None, child=None)

        def is_there(process=run, where=found):
            assert process.poll() is None, process.communicate()
            try:
                where.first, where.child = rank_of(process, 0), rank_of(process, 2)
            except (FileNotFoundError, ProcessLookupError):  # it has just begun, or ended
                return False
            return None not in (where.first, where.child)
        testing.until(is_there)
        os.kill(found.child, number)
        if number == signal.SIGINT:  # what comes to another one is no second signal
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.first, number)
        out, err = run.communicate()
    assert run.returncode == status, (run.returncode, out, err)
    if number == signal.SIGKILL:
        assert "rank 2" in err and "signal 9" in err, err
    else:
        # how many are finished by then, nobody knows
        said = r"duet: interrupted: node [02]: Interrupt: \d+ of 200000 measured runs are finished"
        told = [line for line in testing.said(err) if ": interrupted, waits" not in line]
        assert len(told) == 1 and re.fullmatch(said, told[0]), err

# One that is stopped is named, and one that ends while kernels last.
with subprocess.Popen(["mpirun", "--timeout", "300", "-n", "2", DUET, "run", *PACED, "--scale",
                       "100000", "--nodes", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      text=True) as run:
    testing.until(lambda: None not in (rank_of(run, 0), rank_of(run, 1)))
    stopped = rank_of(run, 1)
    os.kill(stopped, signal.SIGSTOP)
    assert any(line.startswith("duet: node 1 has not answered") for line in run.stderr)
    os.kill(stopped, signal.SIGTERM)
    os.kill(stopped, signal.SIGCONT)
    err = run.communicate()[1]
assert re.search("^duet: (interrupted: )?node 1: ", err, re.M), err

# What one node alone cannot begin with is told, and its reason, and nothing else is begun.
first = ["run", "saxpy", "--n", "1000", "--tile", "100", "--nodes", "2", "--quiet"]
pathlib.Path("mine.json").write_bytes(
    (pathlib.Path(os.environ["DUET_SOURCE_DIR"]) / "platforms/idgraf.json").read_bytes())
for words in ([*first, "--policy", "ws,eager"],
              ["validate", *VALIDATE, "--reps", "2", "--policy", "ws,heft", "--quiet"]):
    mine = [*words, "--emulate", "./mine.json"]
    result = mpirun(1, *mine, ":", "-n", "1", "sh", "-c", 'cd / && exec "$@"', "sh", DUET, *mine,
                    status=1)
    told = [line for line in testing.said(result.stderr) if "mine.json" in line]
    assert re.match("duet: .*node 1: ", *told), result

# Of one node each, a process waits for no other.
alone = ["validate", *VALIDATE[:VALIDATE.index("--nodes")], "--nodes", "1", "--reps", "2",
         "--quiet"]
result = mpirun(1, *alone, ":", "-n", "1", DUET, *alone, "--fail-over", "0.0001%", status=0)
assert "1 case" in result.stdout, result

# Simulated nodes are no processes: what one cannot write, no other waits for.
result = mpirun(2, "simulate", "cholesky", "--platform", "idgraf", "--n", "1920", "--nodes", "2",
                "--network", "switch:10Gbps,5us", "--trace", "nowhere/a.json", status=2)
assert len(testing.said(result.stderr)) == 1, result

# What a library of another process says before it aborts is seen.
testing.compile_policy("abort.so", keeps="0",
                       popped="assert(getenv(\"OMPI_COMM_WORLD_RANK\")[0] == '0');")
testing.compile_policy("idle.so", keeps="0")
result = mpirun(2, "run", *SMALL, "--nodes", "2", "--policy", "./abort.so")
assert result.returncode != 0 and ": pop: Assertion `" in result.stderr, result
result = mpirun(2, *first, "--policy", "./idle.so,ws", "--watchdog", "0.5", status=1)
assert re.search("node [01]: .* cannot go on", result.stderr), result
