# SPDX-License-Identifier: Apache-2.0
"""`duet simulate FILE`: what a task graph from a file says is what is simulated, and bad input."""

import json
import os
import pathlib
import subprocess
import tempfile

import testing
from testing import ROOT, good, refused

FOLDER = pathlib.Path(tempfile.mkdtemp())


def graph(tasks, archs=("cpu", "cuda"), kernels=("a", "b"), data=(), **more):
    return {"format": "duet-graph", "schema": 1, **more, "architectures": archs,
            "kernels": kernels, "data": data, "tasks": tasks}


def run(contents, *options, command="simulate", cpus=4, gpus=8):
    path = FOLDER / "g.json"
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    machine = "--emulate" if command == "run" else "--platform"
    return testing.duet(command, str(path), machine, "idgraf", "--cpus", str(cpus), "--gpus",
                        str(gpus), *options)


def simulated(contents, *options, **more):
    result = run(contents, "--no-costs", "--json", *options, **more)
    assert result.returncode == 0 and not result.stderr, result
    return json.loads(result.stdout)["runs"]


def makespan(*args, **more):
    return simulated(*args, **more)[0]["makespan_s"]["median"]


def close(value, wanted):
    assert abs(value - wanted) <= 1e-6 * wanted, (value, wanted)


# Times: of the architecture, of its backend, else the first that is known by the speed.
one = graph([{"kernel": 0, "seconds": [3, 2]}])
assert simulated(one, gpus=0)[0]["gflops"] is None  # no work is known
close(makespan(one, "--speed", "gpu=10", cpus=0), 2)
# Its times do not scatter: nothing is drawn, nothing is certain.
drawn = run(one, "--noise", "--reps", "2", "--policy", "heft", "--json")
assert drawn.stderr == "duet: no spread is known of the times of g: --noise draws nothing\n", drawn
assert json.loads(drawn.stdout)["runs"][0]["makespan_s"]["ci95_low"] is None, drawn
exact = graph([{"kernel": 0, "seconds": [3, 2, 1]}], archs=["cpu", "cuda", "c2050"])
close(makespan(exact, cpus=0), 1)
unknown = graph([{"kernel": 0, "seconds": [3, None]}])
close(makespan(unknown, cpus=0), 3)
told = simulated(unknown, "--speed", "gpu=10")[0]["estimated"]
assert told == "tasks (share of the time: x5650 100 % as for cpu, c2050 100 % as for cpu)", told
for speed, wanted in (("c2050=10", .3), ("a@gpu=10", .3), ("b@gpu=10", 3), ("cpu=2", 6)):
    close(makespan(unknown, "--speed", speed, cpus=0), wanted)
close(makespan(unknown, "--speed", "gpu=10", "--speed", "a@gpu=30", cpus=0), .1)
backward = graph([{"kernel": 0, "seconds": [None, 2]}])
close(makespan(backward, "--speed", "cuda=10", gpus=0), 20)
# what a file's times are of is no GPU, unless it is called like one
other = graph([{"kernel": 0, "seconds": [3]}], archs=["reference"])
close(makespan(other, "--speed", "gpu=10", cpus=0), .3)
# a task without a duration goes by
close(makespan(graph([{"kernel": 0, "seconds": [0, 0]}, {"kernel": 1, "seconds": [1, 1],
                                                         "after": [0]}])), 1)
# what the platform knows of a kernel counts more
known = graph([{"kernel": 0, "seconds": [100, 100], "work": 2 * 960**3}], kernels=["dgemm"])
assert makespan(known) < 1

# Order: through data, and through explicit edges; and restrictions, and priorities.
chain = [{"kernel": 0, "accesses": [[0, "rw"]], "seconds": [1, 1]} for _ in range(5)]
close(makespan(graph(chain, data=[{"bytes": 8}]), gpus=0), 5)
readers = [{"kernel": 0, "accesses": [[0, "w"]], "seconds": [1, 1]},
           *({"kernel": 0, "accesses": [[0, "r"]], "seconds": [1, 1]} for _ in range(4))]
close(makespan(graph(readers, data=[{"bytes": 8, "initial": False}]), gpus=0), 2)
sums = [*({"kernel": 0, "accesses": [[0, "reduce"]], "seconds": [1, 1]} for _ in range(4)),
        {"kernel": 0, "accesses": [[0, "r"]], "seconds": [1, 1]}]
close(makespan(graph(sums, data=[{"bytes": 8}]), gpus=0), 2)
lonely = [{"kernel": 0, "seconds": [1, 1], "where": "gpu"} for _ in range(4)]
close(makespan(graph(lonely), gpus=1), 4)
close(makespan(graph([{**task, "where": "x5650"} for task in lonely]), cpus=2), 2)
urgent = [{"kernel": 0, "seconds": [1, 1]},
          *({"kernel": 0, "seconds": [1, 1], "after": [0]} for _ in range(4)),
          {"kernel": 0, "seconds": [4, 4], "after": [0], "priority": 9}]
close(makespan(graph(urgent), "--policy", "eager", cpus=2, gpus=0), 5)
close(makespan(graph(urgent), "--policy", "no-prio", cpus=2, gpus=0), 7)

# More edges than a task of libduet may have; kernels are called as what the replay itself submits.
wide = [*({"kernel": 0, "seconds": [1e-6, None]} for _ in range(65537)),
        {"kernel": 1, "seconds": [3, None], "after": list(range(65537))}]
wide = graph(wide, kernels=["join", "b"])
close(makespan(wide, "--policy", "eager", gpus=0, cpus=1), 3.065537)
close(makespan(graph(sums, kernels=["reduction init"], data=[{"bytes": 8}]), gpus=0), 2)

# Bytes: data goes where it is needed; what a task makes comes from nowhere.
made = [{"kernel": 0, "accesses": [[0, "r"], [1, "w"]], "seconds": [9, 1], "where": "cuda"},
        {"kernel": 0, "accesses": [[1, "r"]], "seconds": [1, 9], "where": "cpu"}]
moved = simulated(graph(made, data=[{"bytes": 1000}, {"bytes": 70000, "initial": False}]))[0]
assert moved["bytes"]["host_to_device"] == 1000 and moved["bytes"]["device_to_host"] == 70000, moved
assert moved["n"] == moved["tasks"] == 2, moved

# All else works as with workloads: policies, files, emulation.
runs = simulated(graph(chain, data=[{"bytes": 8}], name="of mine"), "--policy", "ws,heft",
                 "--trace", str(FOLDER / "t.json"), "--html", str(FOLDER / "t.html"))
assert {r["workload"] for r in runs} == {"of mine"} and len(runs) == 2
assert '"a"' in (FOLDER / "t-heft.json").read_text()
emulated = run(graph([{"kernel": 0, "seconds": [.01, .01]}]), "--reps", "1", command="run")
assert emulated.returncode == 0 and "emulated idgraf" in emulated.stdout, emulated

# Two short lists of nodes are many edges, for which memory may lack; a mark of UTF-8 is none.
crowd = "{" + " ".join(map(str, range(10001))) + "}"
close(makespan("\ufeff" + json.dumps(one), gpus=0), 3)

for contents, options, message in [
        (f"digraph {{ {crowd} -> {crowd} }}", [], "g.json:1: more than 100000000 edges"),
        ("", [], "g.json: the file is empty"),
        ("hello", [], "g.json: a task graph in none of the formats that duet reads"),
        ('{"schemaVersion": 1, "traceEvents": [{"ph": "X"}]}', [], "g.json:1: no trace of duet's"),
        ("\0", [], "g.json: this is no text"),
        (graph([]), [], "g.json: there is no task in this graph"),
        (graph([{"kernel": 0, "name": "wide", "accesses": [[0, "r"]] * 65536}], data=[{}]), [],
         "g.json: task 'wide' accesses 65536 data (files, edges with bytes), and duet's tasks"),
        (graph([{"kernel": 0, "name": "lost"}]), [], "task 'lost': no time is known for kernel a"),
        (graph([{"kernel": 0}]), [], "as cost= in DOT"),
        (graph(lonely), ["--gpus", "0"], "restriction"),
        (graph([{**lonely[0], "where": "m2070"}]), [], "on 'm2070' only, which this machine"),
        (one, ["--speed", "gpu"], "--speed takes [KERNEL@]ARCH=X"),
        (one, ["--speed", "fish=2"], "idgraf has no such architecture"),
        (one, ["--speed", "c@gpu=2"], "there is no kernel 'c' in g"),
        (one, ["--n", "3"], "--n is for duet's own workloads"),
        (one, ["--param", "a=b"], "--param is for duet's own workloads")]:
    result = run(contents, *options)
    refused(result, message)
for name in ("/", "fish"):
    result = testing.duet("simulate", name, "--platform", "idgraf", status=2)
    assert name in result.stderr, result

# What is in a file; and the same in other formats, as often as one likes.
RANDOM = ROOT / "examples" / "graphs" / "rand0000.stg"


told = good("list", RANDOM)
# 262 s is the sum of the times in the file; 11 more tasks than 9 levels would need side by side
assert told.splitlines()[0] == "rand0000: 50 tasks, 96 edges", told
assert "longest chain 9 tasks" in told and "critical path 55 s, all tasks 262 s" in told, told
last = RANDOM
for name in ("dot", "wfformat", "json", "stg", "json"):
    path = FOLDER / f"rand0000.{name}"
    good("export", last, "--format", name, "--out", path)
    assert good("list", path) == told, (name, good("list", path))
    last = path
assert good("export", last, "--format", "json") == path.read_text()
# of the makespan on four processors no policy is below the bounds, and the runtime takes nothing
runs = json.loads(good(
    "simulate", RANDOM, "--platform", "idgraf", "--cpus", 4, "--gpus", 0, "--no-costs",
    "--policy", "ws,heft,cp", "--json"))["runs"]
spans = {run["policy"]: run["makespan_s"]["median"] for run in runs}
assert all(run["bounds_s"]["best"] == run["bounds_s"]["mixed"] == 65.5 for run in runs), runs
assert all(66 <= span <= 80 and span == round(span) for span in spans.values()), spans

# A workload as a file is the workload, to the last digit, where its data is not cut.
for workload, exact in (("cholesky --n 7680", True), ("qr --n 3840", False)):
    good("export", *workload.split(), "-p", "idgraf", "--out", FOLDER / "w.json")
    spans = [[run["makespan_s"]["median"] for run in json.loads(good(
        "simulate", *words, "-p", "idgraf", "--policy", "heft,ws,dmdas", "--json"))["runs"]]
             for words in (workload.split(), [FOLDER / "w.json"])]
    assert spans[0] == spans[1] or not exact, (workload, spans)
    assert all(abs(a / b - 1) < .2 for a, b in zip(*spans)), (workload, spans)
# A trace of a workload is that, too, and of a program on this machine says what it says.
good("simulate", *"lu --n 4800 -p idgraf --policy ws --trace".split(), FOLDER / "trace.json")
spans = [json.loads(good("simulate", *words, *"-p idgraf --policy heft,cp --json".split()))["runs"]
         for words in ("lu --n 4800".split(), [FOLDER / "trace.json"])]
assert [[run["makespan_s"] for run in runs] for runs in spans][0] == [
    run["makespan_s"] for run in spans[1]], spans
assert good("export", FOLDER / "trace.json", "--format", "stg").split()[0] == "55"
about = json.loads(good("list", FOLDER / "trace.json", "--json"))
assert (about["name"], about["tasks"], about["untimed"]) == ("lu", 55, 0), about
assert about["edges"] == int(good("list", FOLDER / "trace.json").split()[3]), about
assert sum(kernel["tasks"] for kernel in about["kernels"]) == 55, about
PROGRAM = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "examples" / "tiled_qr"
if PROGRAM.exists():
    exported = good("export", "-p", "idgraf", "--", PROGRAM, 256, 64)
    subprocess.run([PROGRAM, "256", "64"], check=True, capture_output=True,
                   env={**os.environ, "DUET_TRACE": str(FOLDER / "real.json")})
    real = json.loads(good("export", FOLDER / "real.json"))["tasks"]
    assert [{**task, "seconds": 0} for task in real] == [
        {**task, "seconds": 0} for task in json.loads(exported)["tasks"]], (real, exported)
    assert all(task["seconds"][0] > 0 for task in real), real
old = json.loads((FOLDER / "trace.json").read_text())
for event in old["traceEvents"]:
    event.get("args", {}).pop("accesses", None)  # arrows have none
(FOLDER / "old.json").write_text(json.dumps(old))

stg = "export", "layered", "--n", 40, "-p", "idgraf", "--format", "stg"
assert good(*stg).split()[0] == "40" and good(*stg, "--out", "-") == good(*stg)
assert not os.path.exists("-")
restricted = json.loads(good("export", "layered", "--n", 40, "-p", "idgraf", "--param",
                             "cpu_only=100"))
assert {task["where"] for task in restricted["tasks"]} == {"cpu"}, restricted

for words, message in [(["export"], "which workload?"),
                       (["export", "cholesky"], "which machine's times? --platform NAME"),
                       (["export", "fish", "-p", "idgraf"], "unknown workload 'fish'"),
                       (["export", "jacobi2d", "-p", "idgraf"], "no time is known for kernel"),
                       (["export", *"cholesky --n 3840 --param block=480 -p idgraf".split()],
                        "tasks that make others, which a task graph cannot say"),
                       (["list", FOLDER / "old.json"], "old.json: the run says nothing of the data "
                        "of its tasks: duet simulate --trace, duet run --trace and DUET_TRACE"),
                       (["list", "policies", "--json"], "--json is for the file of a task graph"),
                       (["run", RANDOM], f"duet simulate {RANDOM} --platform NAME"),
                       (["export", "lu", "-p", "idgraf", "--", "true"], "but not both"),
                       (["export", RANDOM, "--format", "fish"], "known are json, dot, wfformat"),
                       (["export", RANDOM, RANDOM], "is one too many"),
                       (["export", RANDOM, "--out", RANDOM], "are one file"),
                       (["export", RANDOM, "--out", FOLDER], ": Is a directory"),
                       (["study", RANDOM, "-p", "idgraf", "--out", FOLDER], ": Is a directory"),
                       (["export", FOLDER / "untimed.json", "--format", "stg"],
                        "no time is known of task 0, and stg has no task without one"),
                       (["list", "./nope.stg"], "./nope.stg: cannot open"),
                       (["simulate", last, "-p", "idgraf", "--trace", last], "are one file")]:
    (FOLDER / "untimed.json").write_text(json.dumps(graph([{"kernel": 0}])))
    result = testing.duet(*words, status=2)
    assert message in result.stderr, (result, message)
    # the address sanitizer has a remark of its own on coroutines
    assert result.stderr.count("\nduet: ") + result.stderr.startswith("duet: ") == 1, result

_, said = testing.interrupted("export", "cholesky", "--n", 192000, "-p", "idgraf", "--out",
                              FOLDER / "none.json")
assert said == "duet: interrupted\n" and not (FOLDER / "none.json").exists(), said
