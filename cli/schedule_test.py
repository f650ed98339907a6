# SPDX-License-Identifier: Apache-2.0
"""Schedules are followed in both worlds; what is none, or of something else, is refused."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from testing import ROOT, duet, refused, run_tests

FOLDER = tempfile.TemporaryDirectory()
HERE = pathlib.Path(FOLDER.name)
SIMULATE = "simulate cholesky --platform idgraf --n 4800 --tile 960 --cpus 4 --gpus 8 --quiet"
SMALL = "simulate cholesky --platform idgraf --n 1920 --cpus 1 --gpus 1 --quiet"  # four tasks
RUN = "run cholesky --n 512 --tile 128 --cpus 2 --reps 2 --quiet"


def written(name, contents):
    path = HERE / name
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents),
                    encoding="utf-8")
    return path


def makespans(command, *options):
    result = duet(*command.split(), *options, "--json", status=0)
    return {run["policy"]: run["makespan_s"]["median"] for run in json.loads(result.stdout)["runs"]}


def planned(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def order_of(trace):
    """The tasks of each worker of a trace, by date, the first task being 1."""
    events = [event for event in planned(trace)["traceEvents"] if event["ph"] in "XM"]
    workers = {(event["pid"], event["tid"]): event["args"]["worker"] for event in events
               if event["name"] == "thread_name" and "worker" in event["args"]}
    kernels = sorted((event for event in events if event.get("cat") == "kernel"),
                     key=lambda event: event["ts"])
    first = min(event["args"]["task"] for event in kernels)
    order = {}
    for event in kernels:
        worker = workers[event["pid"], event["tid"]]
        order.setdefault(worker, []).append(event["args"]["task"] - first + 1)
    return order


def given(plan):
    return {worker: tasks for worker, tasks in plan["schedule"].items() if tasks}


def test_simulations_follow():
    plan, trace = HERE / "plan.json", HERE / "trace.json"
    for policy in ["eager", "heft", "dmdas"]:  # these bring data when a worker takes its task
        first = makespans(SIMULATE, "--policy", policy, "--schedule-out", plan, "--trace", trace)
        again = makespans(SIMULATE, "--policy", f"{plan},{trace}")
        assert {*again.values()} == {*first.values()} == {planned(plan)["makespan_s"]}, again
        assert order_of(trace) == given(planned(plan))
    kernels = planned(plan)
    assert kernels["kernels"][:2] == ["dpotrf", "dtrsm"] and len(kernels["end_s"]) == 35, kernels


def test_runs_follow():
    plan, trace, later = HERE / "run.json", HERE / "run_trace.json", HERE / "later.json.gz"
    makespans(RUN, "--policy", "ws", "--schedule-out", plan)
    makespans(RUN, "--policy", plan, "--trace", trace, "--schedule-out", later, "--verify")
    assert order_of(trace) == given(planned(plan)), planned(plan)
    makespans(RUN, "--policy", later, "--trace", trace)  # also one that is compressed
    assert order_of(trace) == given(planned(plan))


def test_explain():
    """What would help a run that follows a schedule is simulated with the schedule."""
    plan, trace = HERE / "explained.json", HERE / "explained_trace.json"
    makespans(SIMULATE, "--policy", "heft", "--schedule-out", plan)
    makespans(SIMULATE, "--policy", plan, "--trace", trace)
    result = duet("explain", trace, "--json", "--quiet", status=0)
    assert not result.stderr, result
    assert json.loads(result.stdout)["what_if"]["changes"], result


def test_a_solver():
    """The one that docs/schedules.md shows."""
    graph, plan, trace = HERE / "graph.json", HERE / "solved.json", HERE / "solved_trace.json"
    problem = "cholesky --n 4800 --tile 960 --cpus 2 --gpus 2 --quiet".split()
    assert duet("export", "cholesky", "--platform", "idgraf", "--n", 4800, "--tile", 960,
                "--out", graph).returncode == 0
    subprocess.run([sys.executable, ROOT / "examples/list_schedule.py", graph,
                    "cpu0 cpu1 gpu0 gpu2", plan], check=True)
    for world in [["simulate", "--platform", "idgraf"],
                  ["run", "--emulate", "idgraf", "--scale", 0.01, "--reps", 1]]:
        duet(*world, *problem, "--policy", plan, "--trace", trace, status=0)
        found, asked = order_of(trace), given(planned(plan))
        # a device may begin the second of the tasks that it has taken before the first
        assert {worker: sorted(tasks) for worker, tasks in found.items()} == {
            worker: sorted(tasks) for worker, tasks in asked.items()}, (found, asked)
        assert all(found[worker] == asked[worker] for worker in asked if worker[0] == "c"), found


def test_slack():
    """What one worker is late with another one takes, if that is allowed."""
    plan = written("slow.json", {"schedule": {"cpu0": [*range(1, 36)]}})
    strict, loose = makespans(SIMULATE, "--policy", f"{plan},{plan}:slack=0").values()
    assert loose < strict / 2, (strict, loose)
    duet(*RUN.split(), "--policy", f"{plan}:slack=0", "--n", 640, "--verify", status=0)
    # what is planned at most so much before the own next task is left
    late = written("late.json", {"schedule": {"cpu0": [*range(1, 35)], "cpu1": [35]},
                                 "start_s": [0] * 34 + [1000]})
    strict, waits, helps = makespans(SIMULATE, "--cpus", 2, "--gpus", 0, "--policy",
                                     f"{late},{late}:slack=2000,{late}:slack=10").values()
    assert abs(waits / strict - 1) < 1e-4 and helps < strict * 0.7, (strict, waits, helps)
    # waiting CPUs leave to GPUs the tasks that those end earlier
    big = SIMULATE.replace("4800", "9600")
    plan = HERE / "big.json"
    makespans(big, "--policy", "dmdas", "--schedule-out", plan)
    strict, loose = makespans(big, "--policy", f"{plan},{plan}:slack=0.01").values()
    assert loose < strict * 1.1, (strict, loose)
    # a device that is lost has its tasks taken by others
    lost = written("lost.json", {"schedule": {"gpu0": [*range(2, 35)], "cpu0": [1, 35]}})
    problem = ["run", "cholesky", "--emulate", "free", "--n", 640, "--tile", 128, "--cpus", 1,
               "--gpus", 1, "--param", "potrf=any", "--reps", 1, "--verify", "--lose", "gpu0@1",
               "--quiet", "--policy"]
    duet(*problem, f"{lost}:slack=0", status=0)
    result = duet(*problem, lost)
    assert result.returncode and "on gpu0, which cannot run it, or is lost" in result.stderr, result


def test_programs_follow():
    program = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "examples/tiled_qr"
    if not program.exists():
        return
    trace, again = HERE / "program.json", HERE / "again.json"
    environment = {**os.environ, "DUET_CPUS": "2"}
    subprocess.run([program, "256", "64"], check=True, stdout=subprocess.DEVNULL,
                   env={**environment, "DUET_TRACE": str(trace)})
    subprocess.run([program, "256", "64"], check=True, stdout=subprocess.DEVNULL,
                   env={**environment, "DUET_POLICY": str(trace), "DUET_TRACE": str(again)})
    assert order_of(trace) == order_of(again)
    bad = subprocess.run([program, "320", "64"], check=False, capture_output=True, text=True,
                         env={**environment, "DUET_POLICY": str(trace)})
    assert bad.returncode and "of another task graph" in bad.stderr, bad


def test_refusals():
    good = {"cpu0": [1, 2, 3, 4]}
    for contents, says in [
            ("nonsense", "bad.json:1: expected an object"),
            ("{}", "no task has a worker"),
            ({"schedule": {"cpu0": []}}, "no task has a worker"),
            ({"schedule": [1]}, "bad.json:1: expected an object"),
            ({"schedule": {"cpu0": "x"}}, "bad.json:1: expected a number"),
            ({"schedule": {"cpu0": [1, 0]}}, "0 is out of range"),
            ({"schedule": {"cpu0": [1, 1.5]}}, "bad.json:1"),
            ({"schedule": {"cpu0": [1, 2, 3, 3]}}, "task 3 stands there twice"),
            ({"schedule": {"cpu0": [1, 2], "cpu1": [2]}}, "task 2 stands there twice"),
            ({"schedule": {"cpu0": [1, 4000000000]}}, "2 tasks and a task 4000000000"),
            ({"plan": good}, "unknown key: known are schedule"),
            ({"schedule": good, "start_s": [0] * 5}, "start_s has 5 values, and there are 4 tasks"),
            ({"schedule": good, "bytes": [0] * 3}, "bytes has 3 values, and there are 4 tasks"),
            ({"schedule": good, "start_s": [1] * 4, "end_s": [2, 2, 0, 2]}, "task 3 ends before"),
            ({"schedule": good, "start_s": [-1]}, "bad.json:1"),
            ({"schedule": {"cpu0": [1, 2, 3]}}, "it has 3 tasks, this one 4"),
            ({"schedule": {"cpu0": [*range(1, 1000001)]}}, "it has 1000000 tasks, this one 4"),
            ({"schedule": {"cpu7": [1, 2, 3, 4]}}, "tasks for 'cpu7': the workers of this machine"),
            ({"schedule": {"gpu0": [1], "cpu0": [2, 3, 4]}}, "task 1 (dpotrf) on gpu0, which can"),
            ({"schedule": good, "kernels": ["dgemm"] * 4}, "its task 1 is a dgemm, that of this"),
            ({"schedule": good, "bytes": [8] * 4}, "(dpotrf) has 8 bytes, in this run 7372800"),
            ({"schedule": {"cpu0": [1, 2, 3, 5]}}, "another task graph: it has no task 4"),
            ({"schedule": {"cpu0": [2, 1, 3, 4]}}, "cpu0 waits for task 2, which is not ready")]:
        bad = written("bad.json", contents)
        refused(duet(*SMALL.split(), "--policy", bad), says)
    refused(duet(*SMALL.split(), "--policy", HERE / "none.json"), "none.json")
    refused(duet(*SMALL.split(), "--policy", f"{bad}:slack=-2"), "slack is a number from -1")
    refused(duet(*SMALL.split(), "--policy", bad, "--nodes", 2, "--network", "switch:1GB/s,1us"),
            "a schedule is of one node")
    refused(duet(*RUN.split(), "--policy", bad), "it has 4 tasks, this one 20")
    wrong = written("wrong.json", {"schedule": {"cpu0": [*range(1, 21)]},
                                   "kernels": ["dgemm"] * 20})
    refused(duet(*RUN.split(), "--policy", wrong), "its task 1 is a dgemm, that of this run a")
    trace = HERE / "nested.json"
    assert duet("run", "fibonacci", "--n", 20, "--tile", 15, "--reps", 1, "--quiet", "--trace",
                trace).returncode == 0
    refused(duet(*SMALL.split(), "--policy", trace), "where tasks make others")


def test_scaled_runs():
    """Dates of a schedule, and of a trace that is one, are the platform's, at whatever pace it was
    run; those of a page's plan are of the run."""
    plan, trace, page = HERE / "scaled.json", HERE / "paced.json", HERE / "scaled.html"
    emulate = "run cholesky --emulate idgraf --scale 8 --n 1920 --cpus 1 --gpus 1 --quiet"
    seconds = makespans(emulate, "--policy", "eager", "--schedule-out", plan, "--trace", trace,
                        "--reps", 1)["eager"]
    assert abs(planned(plan)["makespan_s"] * 8 / seconds - 1) < 1e-6, (planned(plan), seconds)
    assert max(planned(plan)["end_s"]) <= planned(plan)["makespan_s"] * (1 + 1e-6)
    for followed in [plan, trace]:
        makespans(emulate, "--policy", followed, "--html", page, "--reps", 1)
        text = page.read_text(encoding="utf-8").split('id="extra">')[1].split("</script>")[0]
        told = json.loads(text)["recordings"][0]["plan"]
        assert abs(told["makespan_s"] / seconds - 1) < 1e-3, (told, seconds)


def test_list_and_compare():
    plan, other = HERE / "a.json", HERE / "b.json"
    makespans(SIMULATE, "--policy", "heft", "--schedule-out", plan)
    makespans(SIMULATE, "--policy", "cp", "--schedule-out", other)
    text = duet("list", plan).stdout
    assert re.search(r"35 tasks, planned makespan 0\.23358 s", text), text
    assert len(text.splitlines()) == 3 + len(given(planned(plan))), text
    text = duet("compare", plan, other).stdout
    moved = int(re.search(r"^(\d+) of 35 tasks have another worker in B; .*A 0\.23358 s, "
                          r"B 0\.23588 s \(\+0\.98 %\)", text)[1])
    a, b = ({task: worker for worker, tasks in planned(path)["schedule"].items() for task in tasks}
            for path in [plan, other])
    assert moved == sum(a[task] != b[task] for task in a), text
    assert duet("compare", plan, plan).stdout.startswith("0 of 35 tasks")
    # one that says least
    least = written("least.json", {"schedule": {"cpu0": [1, 2]}})
    assert "a schedule of 2 tasks\n" in duet("list", least).stdout
    refused(duet("compare", plan, least), "different task graphs: 35 tasks, and 2")
    refused(duet("compare", plan, other, "--json"), "a table only")
    gaps = written("gaps.json", {"schedule": {"cpu0": [*range(1, 35), 60000]}})
    refused(duet("compare", gaps, plan), "different task graphs")


def test_improve():
    plan = HERE / "better.json"
    found = makespans(SIMULATE, "--policy", "cp,dmdas", "--improve", "300ms", "--schedule-out",
                      plan)
    best = HERE / "better-improved.json"
    assert found["improved"] <= min(found.values()) * 1.001, found
    assert makespans(SIMULATE, "--policy", best) == {str(best): found["improved"]}
    for options, says in [("--noise", "leave out --noise"), ("--reps 3", "leave out --reps"),
                          ("--nodes 2 --network switch:1GB/s,1us", "leave out --nodes"),
                          ("--n 960,1920", "--improve")]:
        refused(duet(*SIMULATE.split(), "--improve", "1s", *options.split()), says)
    refused(duet("simulate", "--platform", "idgraf", "--improve", "1s", "--", "true"),
            "duet export makes one")


run_tests(globals())
