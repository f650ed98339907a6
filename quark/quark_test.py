# SPDX-License-Identifier: Apache-2.0
"""Programs of QUARK give what QUARK says, with any number of threads and any policy, leave traces
and calibrations, and are told by name what there is not."""

import json
import os
import pathlib
import subprocess
import tempfile

import repository

PROGRAM = repository.BUILD / "tests" / "quark_programs"
CASES = ["cholesky", "team", "gather", "sequences", "cancelling", "asking", "worker_loop"]
WHERE = "duet's policies decide where tasks run\n"
REFUSED = {
    "thread": "duet: TASK_LOCK_TO_THREAD: " + WHERE,
    "mask": "duet: TASK_LOCK_TO_THREAD_MASK: " + WHERE,
    "manual": "duet: THREAD_SET_TO_MANUAL_SCHEDULING: " + WHERE,
    "count": "duet: TASK_THREAD_COUNT: a task of 1000 threads, of 2 that there are\n",
    "kind": "duet: QUARK_Insert_Task: argument flags 0x1000 name no kind of argument\n",
    "value": "duet: QUARK_Task_Flag_Set: there is no flag 0x4000\n",
    "scratch": "duet: QUARK_Insert_Task: a VALUE or SCRATCH of -4 bytes\n",
    "nested": "duet: QUARK_Insert_Task: called in a task: tasks are inserted outside of tasks\n",
}


def run(*words, status=0, **variables):
    environment = os.environ | {"DUET_WATCHDOG": "never"} | variables
    done = subprocess.run([PROGRAM, *map(str, words)], env=environment, timeout=1000,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    told = "".join(line for line in done.stderr.splitlines(True) if "take turns" not in line)
    assert done.returncode == status, (words, variables, done.returncode, told)
    return told


def test_cases():
    for threads in (1, 2, 3, 8):
        for case in CASES:
            assert run(case, threads) == "", (case, threads)
        for seed in range(5):
            assert run("random", threads, seed) == ""
    # some of these let no worker take another's task: threads stand in for those of a team
    for policy in ("heft", "eager", "random", "dmdas", "cp"):
        for case in ("random", "team"):
            assert run(case, 3, DUET_POLICY=policy) == "", (policy, case)
    assert run("random", 3, DUET_WINDOW="20") == ""
    assert run("priorities", 1, DUET_POLICY="eager", DUET_HOLD="1") == ""
    assert run("asking", 0, QUARK_NUM_THREADS="2") == "", "the number of threads by the environment"


def test_refusals():
    for case, told in REFUSED.items():
        assert run("refused", 2, case, status=2) == told, case
    assert run("refused", 2, "dag").startswith("duet: QUARK_DOT_DAG_Enable draws no graph: ")
    assert "'x' is no number" in run("asking", 0, status=2, QUARK_NUM_THREADS="x")
    assert "DUET_NODES" in run("asking", 2, status=2, DUET_NODES="2")
    assert "nowhere" in run("asking", 2, status=2, DUET_POLICY="nowhere")


def test_worlds():
    """A trace has the kernels' names, and a calibration is all that a simulation needs."""
    with tempfile.TemporaryDirectory() as folder:
        trace, mine = pathlib.Path(folder) / "trace.json", pathlib.Path(folder) / "mine.json"
        assert run("cholesky", 1, DUET_TRACE=str(trace), DUET_CALIBRATE=str(mine)) == ""
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
        assert {"potrf", "a_label"} <= names, names
        assert any(name.startswith("quark_programs+0x") for name in names), names
        run("cholesky", 1, DUET_SIMULATE=str(mine), DUET_TRACE=str(trace))
        names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
        assert names.count("potrf") == 6, names
        cores = min(2, len(os.sched_getaffinity(0)))  # a simulation has those that were measured
        run("team", cores, DUET_CALIBRATE=str(mine))
        run("team", cores, DUET_SIMULATE=str(mine))


if not PROGRAM.exists():
    repository.skip("libduet-quark was not built")
test_cases()
test_refusals()
test_worlds()
