# SPDX-License-Identifier: Apache-2.0
"""`duet simulate`: bad input, outputs, determinism, files, interruption."""

import csv
import functools
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import testing
from testing import (DUET, ROOT, children_of, compile_policy, has_begun, is_alive, refuse_all,
                     refused, run_tests, until)

SMALL = "cholesky --platform idgraf --n 7680 --tile 960 --cpus 4 --gpus 8".split()

# (arguments after SMALL, or all of them, as one text; what the message says)
BAD = [
    ("", "which workload"),
    ("fish --platform idgraf", "unknown workload 'fish', known are: cholesky"),
    ("cholesky", "--platform NAME"),
    ("cholesky gemm --platform idgraf", "'gemm' is one too many"),
    ("cholesky --platform nope", "idgraf"),
    ("cholesky --platform ''", "--platform takes the name of a machine"),
    ("cholesky --platform /nope/x.json", "/nope/x.json"),
    ("+ --link all=1e-300x", "of more than 1e+15 s nothing is reported"),
    ("+ --link all=1e-320x", "the bandwidth must be finite and positive"),
    ("+ --policy fish", "fish"),
    ("+ --policy heft,,ws", "''"),
    ("+ --policy ''", "names no policy"),
    ("+ --policy heft,ws,heft", "'heft' twice"),
    ("+ --policy ./nope.so", "nope.so"),
    ("+ --policy w-rand:cpu=1,w-rand:cpu=-1", "cpu is a number from 0 to 1e+06, not '-1'"),
    ("+ --policy w-rand:gpu=1,ws,w-rand:gpu=1", "'w-rand:gpu=1' twice"),
    ("+ --policy all,ws", "'ws' twice"),
    ("+ --model fish", "unknown performance model 'fish': known are history"),
    ("+ --priorities fish", "unknown priorities 'fish': known are none, workload and bottom-level"),
    ("+ --model-error 1", "--model-error"),
    ("+ --perturbation 1", "--perturbation"),
    ("+ --nope", "--nope"),
    ("+ --n", "--n"),
    ("+ --n 0", "--n takes a whole number"),
    ("+ --n ''", "--n takes a whole number"),
    ("+ --n 500", "tile"),
    ("+ --precision x", "--precision is s"),
    ("+ --cpus 100", "100"),
    ("+ --cpus 0 --gpus 0", "worker"),
    ("+ --gpus ,", "--gpus"),
    ("+ --gpu-window 1025", "--gpu-window takes a whole number from 1 to 1024"),
    ("+ --gpu-window-short 1", "--gpu-window-short 1 is less than --gpu-window 2 (the default)"),
    ("+ --param variant=left --param variant=right", "--param gives 'variant' twice"),
    ("+ --cpus 0", "(--param potrf=any)"),
    ("+ --machine-xml /nope/x.xml", "cannot write /nope/x.xml.kernels.json: No such file"),
    ("+ --gpu-streams 2", "--gpu-streams"),
    ("+ --pin none", "--pin"),
    ("+ --gpu-memory 0%", "80%"),
    ("+ --gpu-memory 1MiB --set-arch", "device memory"),
    ("+ --link pcie", "NAME=VALUE"),
    ("+ --link pcie=12", "12GB/s"),
    ("+ --link fish=1GB/s", "fish"),
    ("+ --costs fish=1us", "fish"),
    ("+ --costs submit=1e300s", "up to 3600s"),
    ("+ --costs submit=1us --no-costs", "exclude each other"),
    ("+ --json --csv", "exclude each other"),
    ("+ --param fish=1", "fish"),
    ("+ --param fish", "NAME=VALUE"),
    ("+ --param variant=fish", "variant"),
    ("+ --tile 3840", "--extrapolate"),
    ("+ --platform mirage", "--platform is given twice: give several as a list, A,B"),
    ("+ --policy ws --policy heft", "--policy is given twice: give several as a list, A,B"),
    ("cholesky --platform sirocco --n 7680 --tile 960", "no time is known for kernel dpotrf on any "
     "architecture of sirocco that implements it: choose another platform, or measure it on that "
     "machine: duet calibrate cholesky --tile 960"),
    ("lu --platform cores --n 960 --tile 480 --precision s",
     ", or measure it on that machine: duet calibrate lu --tile 480 --precision s"),
    ("+ --n 7700", "duet calibrate cholesky --tile 960,20; the last tile is 20, as n 7700 is no "
     "multiple of 960"),
    ("+ --trace /nope/x.json", "/nope/x"),
    ("+ --gantt x.png", "--gantt x.png: what is written is svg, not png: end the name in .svg"),
    ("+ --html ''", "--html takes the name of a file"),
]


# (arguments after SMALL in a folder that the test below fills, what the message says)
CLASHES = [
    ("--html x.html --trace ./x.html", "--trace and --html are one file, x.html"),
    ("--html sub/../x.html --trace x.html", "--trace and --html are one file"),
    ("--html linked/x.html --trace sub/x.html", "--trace and --html are one file"),
    ("--html dangling --trace nothing.json", "--trace and --html are one file"),
    ("--trace x.json --gantt x.json", "--trace and --gantt are one file, x.json"),
    ("--policy ws,heft --trace x.json --html x-heft.json",
     "--trace of heft and --html are one file, x-heft.json"),
    ("--policy ./q1/p.so,./q2/p.so,ws --trace qq.json",
     "--trace of ./q1/p.so and --trace of ./q2/p.so are one file, qq-p.json"),
    ("--policy ws,w-rand:gpu=2 --trace x.json --html x-w-rand:gpu=2.json",
     "--trace of w-rand:gpu=2 and --html are one file, x-w-rand:gpu=2.json"),
    ("--policy ./q1/p.so --html q1/p.so", "--policy ./q1/p.so and --html are one file"),
    ("--platform ./in.json --trace in.json", "--platform and --trace are one file, in.json"),
    ("--platform ./in.json --html linked.json", "--platform and --html are one file"),
    ("--platform in.json --html idgraf.kernels.json --policy ws", None),
    ("--platform ./in.json --gantt in.kernels.json",
     "the kernel times of --platform and --gantt are one file"),
    ("--machine-xml m.xml --html m.xml", "--html and --machine-xml are one file, m.xml"),
    ("--machine-xml m.xml --trace m.xml.kernels.json",
     "--trace and the kernel times of --machine-xml are one file, m.xml.kernels.json"),
    ("--trace /dev/null --gantt /dev/null", None),
]


duet = functools.partial(testing.duet, "simulate")
good = functools.partial(testing.good, "simulate", *SMALL)


def test_interval():
    """Runs whose machine is drawn: the same every time, wider than noise, with what it rests on."""
    runs = [json.loads(good("--interval", "run", "--policy", "heft", "--json"))["runs"][0]
            for _ in range(2)]
    assert runs[0] == runs[1], runs
    makespan = runs[0]["makespan_s"]
    assert len(makespan["values"]) == 39 and makespan["interval"] == "run", makespan
    assert makespan["low"] < makespan["median"] < makespan["high"], makespan
    assert sum(makespan["low"] <= value <= makespan["high"] for value in makespan["values"]) == 37
    assert runs[0]["basis"] == {"measured": 1, "interpolated": 0, "extrapolated": 0,
                                "estimated": 0, "guessed": 0}, runs[0]
    noise = json.loads(good("--noise", "--reps", "39", "--policy", "heft", "--json"))["runs"][0]
    assert noise["makespan_s"]["low"] is None and noise["makespan_s"]["interval"] is None, noise
    values = sorted(noise["makespan_s"]["values"])
    assert values[37] - values[1] < makespan["high"] - makespan["low"], (values, makespan)
    between = good("--interval", "median:5", "--tile", "700", "--set-arch")
    assert "interval of the median of 5 runs, 39 runs" in between and "90% of later" in between
    assert "kernel times of ws: 100.0 % interpolated" in between and "interval of ws: +-" in between
    nodes = good("--interval", "run", "--policy", "heft", "--nodes", "2", "--network",
                 "switch:100Gbps,10ms")
    assert "if the network's latency were certain" in nodes, nodes
    for words, says in ((["median:0"], "'median:0' is neither run"),
                        (["run", "--reps", "18"], "no 90 % of fewer than 19 runs")):
        refused(duet(*SMALL, "--interval", *words), says)


def test_states():
    """With noise a machine is in the state of its median run, on one worker or on several."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "states.json"
        platform = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
        for key, factors in (("alone", [1] * 21), ("busy", [1] * 21), ("", [0.5] * 11 + [1] * 10)):
            usual = {key: 2} if key else {}
            platform["states"] = {"runs": 15, "drift": 0, "origin": "a test",
                                  "factors": factors, **usual}
            path.write_text(json.dumps(platform), encoding="utf-8")
            for cpus in "1", "2":
                seconds = []
                for words in [str(path)], [str(path), "--noise"], ["idgraf", "--noise"]:
                    run = duet("cholesky", "--n", "3840", "--cpus", cpus, "--gpus", "0", "--policy",
                               "eager", "--no-costs", "--json", "--platform", *words, status=0)
                    seconds.append(json.loads(run.stdout)["runs"][0]["makespan_s"]["median"])
                longer = {("alone", "1"): 2, ("busy", "2"): 2, ("", "1"): 0.5, ("", "2"): 0.5}
                expected = longer.get((key, cpus), 1)
                assert abs(seconds[1] / seconds[2] / expected - 1) < 1e-6, (key, cpus, seconds)
                assert abs(seconds[0] / seconds[2] - 1) < 0.2, (key, cpus, seconds)


def test_bad_input():
    refuse_all("simulate", BAD, SMALL)


def test_table():
    """All policies, and one's own beside them."""
    with tempfile.TemporaryDirectory() as folder:
        compile_policy(f"{folder}/mine.so")
        text = good("--n", "1920", "--policy", "all,./mine.so", "--set-arch", "--noise", cwd=folder)
    assert text.startswith("simulated on idgraf: 4 CPUs (x5650) + 8 GPUs (c2050)\n")
    assert "cholesky, n 1920, tile 960, double precision, 4 tasks, set-arch, noise" in text
    for name in "ws", "data-aware", "locality-aware", "heft", "eager", r"\./mine\.so":
        assert re.search(rf"^{name} +\d", text, re.M), (name, text)
    assert "lower bounds: critical path" in text
    assert max(map(len, text.splitlines())) <= 100, text


def test_json_and_csv():
    options = ["--policy", "heft,ws", "--reps", "2", "--seed", "7", "--noise"]
    report = json.loads(good("--json", "--wall", *options))
    assert list(report) == ["schema", "command", "runs"] and report["schema"] == 1
    assert report["command"].startswith("duet simulate cholesky --platform idgraf")
    assert [run["policy"] for run in report["runs"]] == ["heft", "ws"]
    rows = list(csv.DictReader(io.StringIO(good("--csv", *options))))
    assert [(row["policy"], row["rep"], row["seed"]) for row in rows] == [
        (policy, str(rep), str(7 + rep)) for policy in ("heft", "ws") for rep in range(2)]
    for i, run in enumerate(report["runs"]):
        assert run["world"] == "simulated" and run["tasks"] == 120 and run["wall_s"] > 0
        assert (run["cpus"], run["gpus"], run["n"], run["tile"]) == (4, 8, 7680, 960)
        values = [float(row["makespan_s"]) for row in rows[2 * i:2 * i + 2]]
        assert values == run["makespan_s"]["values"]
        assert min(values) < run["makespan_s"]["median"] < max(values), "two seeds, two makespans"
        assert 0 < run["bounds_s"]["critical_path"] <= run["makespan_s"]["median"] * 1.2
        assert 0 < run["idle_share"] < 1 and run["gflops"] > 0


def test_determinism():
    """Same command, same bytes, however many processes share the work."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = []
        for jobs in "1", "4":
            text = good("--n", "2880", "--policy", "heft,ws,random", "--reps", "2", "--noise",
                        "--csv", "--jobs", jobs, "--trace", "t.json", "--gantt", "g.svg",
                        cwd=folder)
            outputs.append((text, snapshot(pathlib.Path(folder))))
        assert outputs[0] == outputs[1]


def test_files():
    with tempfile.TemporaryDirectory() as folder:
        report = json.loads(good("--policy", "heft,ws", "--trace", "t.json", "--gantt", "out.d.svg",
                                 "--html", "p.html", "--json", cwd=folder))
        assert sorted(os.listdir(folder)) == ["out.d-heft.svg", "out.d-ws.svg", "p.html",
                                              "t-heft.json", "t-ws.json"]
        events = json.loads(pathlib.Path(folder, "t-ws.json").read_text())["traceEvents"]
        kernels = [event for event in events if event.get("cat") == "kernel"]
        assert sorted(event["args"]["task"] for event in kernels) == list(range(1, 121))
        # dates begin with the first submission, so that the last one is the makespan
        assert min(event["args"]["submitted_us"] for event in kernels) == 0
        makespan = report["runs"][1]["makespan_s"]["median"]
        last = max(event["ts"] + event["dur"] for event in kernels)
        assert abs(last / 1e6 - makespan) < 2e-9, (last, makespan)
        root = xml.etree.ElementTree.parse(os.path.join(folder, "out.d-ws.svg")).getroot()
        assert root.tag.endswith("svg")
        # what stands there already stays when a run fails
        before = snapshot(pathlib.Path(folder))
        duet(*SMALL, "--tile", "3840", "--html", "p.html", cwd=folder, status=2)
        assert snapshot(pathlib.Path(folder)) == before


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file()}


def test_files_are_distinct():
    """No file overwrites another or an input; nothing is written where one would."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for sub in "sub", "q1", "q2":
            (folder / sub).mkdir()
        compile_policy(folder / "q1" / "p.so")
        shutil.copy(folder / "q1" / "p.so", folder / "q2" / "p.so")
        # a machine as older versions wrote it: in two files
        machine = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
        times = {"schema": 1, "curves": machine.pop("curves")}
        machine |= {"schema": 1, "name": "in", "calibration": "in.kernels.json"}
        (folder / "in.json").write_text(json.dumps(machine), encoding="utf-8")
        (folder / "in.kernels.json").write_text(json.dumps(times), encoding="utf-8")
        (folder / "linked").symlink_to("sub")
        (folder / "linked.json").symlink_to("in.json")
        (folder / "dangling").symlink_to("nothing.json")
        before = snapshot(folder)
        for text, fragment in CLASHES:
            here = SMALL[:1] + SMALL[3:] if "--platform" in text else SMALL
            result = duet(*here, *text.split(), cwd=folder)
            if fragment is None:
                assert result.returncode == 0 and not result.stderr, (text, result)
                before = snapshot(folder)
            else:
                refused(result, fragment)
                assert snapshot(folder) == before, text


def test_unwritten_file():
    """A file that fails after the runs costs neither the table nor the other files."""
    with tempfile.TemporaryDirectory() as folder:
        result = duet(*SMALL, "--trace", "/dev/full", "--html", "p.html", cwd=folder, status=1)
        assert re.search(r"^ws +\d", result.stdout, re.MULTILINE), result
        full = "duet: cannot write /dev/full: No space left on device\n"
        assert result.stderr == full, result
        assert os.listdir(folder) == ["p.html"]
        for option in "--html", "--gantt":
            result = duet(*SMALL, "--n", "1920", option, "/dev/full", cwd=folder, status=1)
            assert result.stderr == full, result


def test_list_workloads():
    text = testing.duet("list", "workloads", status=0).stdout
    assert "kernels:;" not in text and "kernels: potrf" in text, text
    assert re.search(r"^ +without --n and --tile: n \d", text, re.M), text


def has_answered(count):
    """For ended(): whether its children have written so many results, each by two writes."""
    def when(process):
        calls = 0
        for child in children_of(process):
            text = pathlib.Path(f"/proc/{child}/io").read_text(encoding="ascii")
            calls += int(re.search(r"syscw: (\d+)", text).group(1))
        return calls >= 2 * count
    return when


def ended(arguments, folder, number, when):
    """The output and messages of a simulation that a signal ends, its children included, as one of
    a terminal does, once `when` holds of the process."""
    process = subprocess.Popen([DUET, "simulate", "cholesky", "--platform", "idgraf", *arguments],
                               cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    until(functools.partial(when, process))
    children = children_of(process)
    if number == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, number)
    output, messages = process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), messages
    until(lambda: not any(map(is_alive, children)))
    return output, messages


def test_interruption():
    """A signal, even one that cannot be caught, ends the children; no file is left behind."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as folder:
        compile_policy(f"{name}/endless.so", popped="for (;;) pause();")
        for number, reps in (signal.SIGINT, 2), (signal.SIGKILL, 2), (signal.SIGINT, 40):
            output, messages = ended(["--n", "7680", "--reps", f"{reps}", "--jobs", "2", "--html",
                                      "p.html", "--policy", f"{name}/endless.so"], folder, number,
                                     has_begun(2))
            if number != signal.SIGKILL:
                assert messages == f"duet: interrupted: 0 of {reps} runs are finished\n", messages
                assert output == f"interrupted: of {reps} runs a policy, none is finished\n", output
            assert os.listdir(folder) == []


def some_finished(arguments, folder, number):
    """What is written when a signal ends it in its third run, or later."""
    output, messages = ended(["--n", "19200", "--reps", "10000", "--jobs", "1", *arguments], folder,
                             number, has_answered(3))
    count = int(re.match(r"duet: interrupted: (\d+) of", messages.splitlines()[-1]).group(1))
    assert count > 1, messages
    return output, messages, count


def test_interrupted_report():
    """What is finished when a signal comes is reported as such, in whole files."""
    output, _, count = some_finished(["--quiet"], ".", signal.SIGTERM)
    assert output.startswith(f"interrupted: of 10000 runs a policy, ws has {count}\n"), output
    assert f", {count} runs a policy\n" in output, output
    with tempfile.TemporaryDirectory() as folder:
        output, messages, count = some_finished(["--policy", "ws,heft", "--csv", "--trace",
                                                 "t.json"], folder, signal.SIGINT)
        assert messages.endswith(" of 20000 runs are finished\n"), messages
        rows = list(csv.DictReader(io.StringIO(output)))
        assert len(rows) == count > 0 and {row["policy"] for row in rows} == {"ws"}, count
        assert os.listdir(folder) == ["t-ws.json"]


def test_failing_policy():
    """One that fails is named, and costs the others nothing."""
    with tempfile.TemporaryDirectory() as name:
        compile_policy(pathlib.Path(name) / "leaves.so", popped="exit(0);")
        result = duet(*SMALL, "--policy", "ws,./leaves.so,heft", "--reps", "2", "--csv", "--gantt",
                      "g.svg", cwd=name)
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert result.returncode == 1, result
        assert [row["policy"] for row in rows] == ["ws"] * 2 + ["heft"] * 2, rows
        said = [line for line in result.stderr.splitlines() if not line.startswith("==")]
        assert said == ["duet: the simulation of ./leaves.so with seed 1 failed: it ended without "
                        "a result"], result.stderr  # beside what a sanitizer says of exit()
        assert sorted(path.name for path in pathlib.Path(name).glob("*.svg")) == [
            "g-heft.svg", "g-ws.svg"]
        assert ": heft, " in (pathlib.Path(name) / "g-heft.svg").read_text()


def test_later_failure():
    """Runs before one that fails are reported, those after it are not, whichever ends first."""
    with tempfile.TemporaryDirectory() as name:
        compile_policy(pathlib.Path(name) / "later.so", popped="""
    static int calls;
    if (!calls++ && duet_view_random(view, (int)worker, 4) == 0)
        exit(0);""")
        for jobs in "1", "3":
            result = duet(*SMALL, "--n", "1920", "--policy", "ws,./later.so", "--reps", "8",
                          "--json", "--jobs", jobs, cwd=name, status=1)
            assert re.fullmatch(r"duet: the simulation of ./later.so with seed \d+ failed: it "
                                r"ended without a result\n", result.stderr), result.stderr
            first, later = json.loads(result.stdout)["runs"]
            assert len(first["makespan_s"]["values"]) == 8
            assert len(later["makespan_s"]["values"]) == int(
                re.search(r"seed (\d+)", result.stderr).group(1)) - 1 > 0


def test_choice():
    """auto runs as the policy that it says, which takes as long as foretold."""
    options = ["--policy", "auto,static,cp,dmda,dmdas"]
    auto, *others = json.loads(good("--json", *options))["runs"]
    choice = auto["choice"]
    # dmda and dmdas may take the same
    best = next(run for run in others if run["policy"] == choice["policy"])
    shortest = min(run["makespan_s"]["median"] for run in others)
    assert best["makespan_s"]["median"] == shortest and choice["tasks"] == auto["tasks"], choice
    assert auto["makespan_s"]["values"] == best["makespan_s"]["values"]
    assert abs(choice["predicted_s"] / best["makespan_s"]["median"] - 1) < 0.01, choice
    assert choice["runner_up_s"] >= choice["predicted_s"] and "choice" not in best
    text = good(*options)
    behind = 100 * (choice["runner_up_s"] / choice["predicted_s"] - 1)
    then = (rf"then {choice['runner_up']}, \+{behind:.2f} %" if behind > 0.5
            else f"{choice['runner_up']} is as good")
    assert re.search(rf"^auto took {best['policy']}, [\d.]+ s expected of 120 tasks; {then}$",
                     text, re.M), text
    text = good("--policy", "auto:tasks=50")
    assert re.search(r"^auto:tasks=50 took \w+, [\d.]+ s expected of 50 tasks", text, re.M), text


def test_long():
    """Before a long simulation it is said how long it will be."""
    with tempfile.TemporaryDirectory() as folder:
        _, messages = ended(["--n", "960000"], folder, signal.SIGTERM, has_begun(1))
        assert messages.startswith("duet: 167167000 tasks in each of 1 run: expect"), messages


probe = duet(*SMALL)
if probe.returncode != 0 and "not built" in probe.stderr:
    print("simulation is not built into this duet")
    sys.exit(77)
run_tests(globals())
