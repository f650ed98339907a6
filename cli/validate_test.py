# SPDX-License-Identifier: Apache-2.0
"""`duet validate`: bad input, cases from options and files, both worlds, planted errors, signals.
"""

import csv
import functools
import io
import json
import math
import os
import pathlib
import re
import tempfile

import testing
from testing import ROOT, busy

PACED = ("cholesky --n 3840 --tile 960 --cpus 1 --gpus 1 --emulate idgraf --scale 0.02"
         " --keep-disturbed --reps 3 --rounds 2 --sim-reps 2").split()
QUICK = "--reps 1 --rounds 1 --sim-reps 1 --warmup 0 --keep-disturbed".split()

# (arguments, after those of PACED where they begin with a +; what the message says)
BAD = [
    ("", "which workload? duet validate WORKLOAD"),
    ("cholesky cholesky --emulate idgraf", "workload is given cholesky twice"),
    ("cholesky", ".json to predict from: run duet calibrate first"),
    ("cholesky --emulate free", "--emulate free needs --platform FILE"),
    ("layered --platform idgraf", "layered has no kernels that compute"),
    ("+ --fail-over 5", "--fail-over takes a percentage above 0 with its sign, such as 5%"),
    ("cholesky --platform idgraf --follow-speed", "--follow-speed: idgraf does not say how fast"),
    ("+ --without fish", "fish"),
    ("+ --until 5", "--until takes a percentage"),
    ("+ --case-time 5", "--case-time takes a time"),
    ("+ --calibrate", "--calibrate: idgraf is known already"),
    ("+ --out x.json", "--out is for --calibrate"),
    ("+ --calibrate-time 5s", "--calibrate-time is for --calibrate"),
    ("cholesky --calibrate --platform idgraf", "--calibrate and --platform exclude each other"),
    ("cholesky --calibrate --out x.txt", "must end in .json"),
    ("cholesky --calibrate --out /nope/x.json", "/nope"),
    ("cholesky --calibrate --calibrate-time 0s", "--calibrate-time takes 0.1s or more"),
    ("+ --html /nope/x.html", "/nope/x.html"),
    ("+ --n 1..10001", "more than 10000 cases are too many"),
    ("--cases nope.json", "nope.json"),
    ("--cases /dev/zero", "/dev/zero: not a regular file"),
    ("--cases f.json --emulate idgraf --html f.json", "--cases and --html are one file"),
    ("--cases f.json --calibrate --out ./f.json", "--cases and --out are one file"),
    ("cholesky --calibrate --out x.json --html ./x.json", "--html and --out are one file"),
]

# (contents of a file of cases; what the message says after its name)
BAD_FILES = [
    ('{"schema": 1, "cases": [{}]}', "which workload?"),
    ('{"schema": 1, "cases": [{"workload": "fish"}]}', "unknown workload 'fish'"),
    ('{"schema": 1, "cases": [{"workload": "lu", "emulate": "free"}]}', "cases[0].emulate"),
    ('{"schema": 1, "cases": [{"workload": "lu", "policy": "fish"}]}', "fish"),
    ('{"schema": 1, "cases": [{"workload": "lu", "set_arch": 2}]}', "cases[0].set_arch"),
    ('{"schema": 1, "cases": [{"workload": "lu", "priorities": "fish"}]}',
     "unknown priorities 'fish'"),
    ('{"schema": 1, "cases": [{"workload": "cholesky", "params": {"fish": 1}}]}', "fish"),
]

CASES = {"schema": 1, "cases": [
    {"workload": "cholesky", "n": "960..1920:960", "policy": ["ws", "heft"], "cpus": [1], "gpus": 1,
     "tile": 960, "params": {"variant": "left", "block": 0}, "set_arch": True},
    {"workload": "gemm", "n": 1920, "tile": 960, "cpus": 0, "gpus": 2, "precision": "s",
     "hold": True, "priorities": "none"}]}


duet = functools.partial(testing.duet, "validate")


def good(*arguments, status=0, elsewhere=None, **options):
    result = duet(*arguments, status=status, **options)
    said = testing.told(result.stderr)
    if elsewhere:  # a platform of another machine than the measured one
        assert said.pop(0) == (f"duet: {elsewhere} is not this machine: errors are of a "
                               "prediction for another one"), result.stderr
    assert status or not said, result.stderr
    return result.stdout


def good_json(*arguments, **options):
    return json.loads(good(*arguments, "--json", **options))


def refused(expected, *arguments, **options):
    testing.refused(duet(*arguments, **options), expected)


def test_bad_input():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "f.json").write_text(json.dumps(CASES), encoding="utf-8")
        testing.refuse_all("validate", BAD, PACED, cwd=folder)
        assert os.listdir(folder) == ["f.json"]


def test_bad_files():
    with tempfile.TemporaryDirectory() as folder:
        for contents, expected in BAD_FILES:
            (pathlib.Path(folder) / "f.json").write_text(contents, encoding="utf-8")
            refused(expected, "--cases", "f.json", "--emulate", "idgraf", cwd=folder)


def check_explanation(case):
    """The parts add up to the difference of the medians; up to the last digits of sums."""
    explanation = case["explanation"]
    whole = case["predicted"]["median_s"] - case["measured"]["median_s"]
    assert math.isclose(explanation["whole_s"], whole, rel_tol=1e-9), case
    total = math.fsum(part["seconds"] for part in explanation["parts"])
    assert math.isclose(total, whole, rel_tol=1e-6, abs_tol=1e-12), (total, whole)


def test_paced():
    """One case of each policy, with as many runs on both sides as were asked for."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        report = good_json(*PACED, "--policy", "ws,heft", "--html", page)
        assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
        assert os.listdir(folder) == ["page.html"]
    assert report["title"] == "cholesky on idgraf" and "x 0.02" in report["machine"], report
    assert [case["policy"] for case in report["cases"]] == ["ws", "heft"]
    # one thread wakes another also where there is one CPU; heft draws nothing itself
    assert "us to wake" in report["calibration"], report["calibration"]
    assert len(set(report["cases"][1]["predicted"]["makespans_s"])) == 2, report["cases"][1]
    for case in report["cases"]:
        assert (case["n"], case["tile"], case["cpus"], case["gpus"]) == (3840, 960, 1, 1), case
        assert len(case["predicted"]["makespans_s"]) == 2 and case["failure"] is None, case
        assert len(case["measured"]["makespans_s"]) == 3, case
        assert case["measured"]["rounds"] == [2, 1] and case["predicted"]["rounds"] is None, case
        # the diagonal tiles alone, on a CPU and one after another, take that long
        assert min(case["measured"]["makespans_s"]) > 4 * 0.0336 * 0.02, case
        assert case["speed"] is None
        check_explanation(case)


def test_scale():
    """The simulated times are multiplied by the scale, dates and accounts included; but for the
    latencies of threads, which are measured here, and left out."""
    predicted = {}
    for scale in "0.01", "0.02":
        report = good_json(*PACED, "--policy", "heft", "--scale", scale, *QUICK, "--without",
                           "wake-ups")
        assert "threads as here: " in report["calibration"], report["calibration"]
        case = report["cases"][0]
        parts = {part["what"]: part["first"] for part in case["explanation"]["parts"]
                 if part["reason"] == "kernel"}
        predicted[scale] = (case["predicted"]["median_s"], parts["dpotrf on x5650"])
    for once, twice in zip(predicted["0.01"], predicted["0.02"]):
        assert math.isclose(2 * once, twice, rel_tol=1e-9), predicted


def test_until():
    """At least as many runs as were asked for, and two in each round, however certain the median
    is; and as many as are allowed at all, where no run differs so little from the others."""
    words = [*PACED, "--n", "1920", "--scale", "0.001", "--rounds", "2", "--case-time", "3599s"]
    for goal, runs in ("999999%", [2, 2]), ("0.000001%", [500, 500]):
        measured = good_json(*words, "--until", goal)["cases"][0]["measured"]
        assert measured["rounds"] == runs, (goal, measured)
        assert len(measured["makespans_s"]) == sum(runs), (goal, measured)
    case = good_json(*words, "--until", "0.000001%", "--case-time", "0s")["cases"][0]
    assert case["measured"]["rounds"] == [2, 1], case["measured"]


def test_default_rounds():
    """Ten, of two runs while there is time; five where the number of runs is given."""
    words = [*PACED[:PACED.index("--reps")], "--n", "1920", "--scale", "0.001", "--sim-reps", "2",
             "--keep-disturbed"]
    for more, runs in (("--until", "999999%", "--case-time", "3599s"), [2] * 10), \
                      (("--reps", "7"), [2, 2, 1, 1, 1]):
        measured = good_json(*words, *more)["cases"][0]["measured"]
        assert measured["rounds"] == runs, (more, measured)


def test_sim_reps():
    """No more simulations where the first say the same, as they do without latencies."""
    case = good_json(*PACED, "--policy", "heft", "--reps", "1", "--without", "wake-ups",
                     "--sim-reps", "40")["cases"][0]
    assert len(case["predicted"]["makespans_s"]) == 5, case["predicted"]


def test_cases_file():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.json"
        path.write_text(json.dumps(CASES), encoding="utf-8")
        report = good_json("--cases", path, "--emulate", "idgraf", "--scale", "0.01", *QUICK,
                           "--priorities", "bottom-level")
    cases = report["cases"]
    assert [(case["workload"], case["n"], case["policy"]) for case in cases] == [
        ("cholesky", 960, "ws"), ("cholesky", 960, "heft"), ("cholesky", 1920, "ws"),
        ("cholesky", 1920, "heft"), ("gemm", 1920, "ws")]
    assert {case["settings"] for case in cases[:4]} == {"block=0, variant=left"}
    assert cases[0]["set_arch"] and not cases[4]["set_arch"]
    assert [(case["hold"], case["priorities"]) for case in cases[3:]] == [
        (False, "bottom-level"), (True, "none")]
    assert (cases[4]["cpus"], cases[4]["gpus"], cases[4]["precision"]) == (0, 2, "s")


def test_cross_product():
    """What a workload or the platform refuses is listed with the reason, among others that work."""
    words = ["cholesky", "--emulate", "idgraf", "--scale", "0.01", *QUICK, "--tile", "960"]
    cases = good_json(*words, "--n", "1920,500", "--cpus", "1,100", "--gpus", "1")["cases"]
    failures = [case["failure"] for case in cases]
    assert len(cases) == 4 and failures[0] is None, failures
    assert "100" in failures[1] and "tiles of 960" in failures[2], failures
    # what cannot be simulated is no fault of the list
    words[-1] = "960,1000"
    result = duet(*words, "--n", "3840", "--csv", status=1)
    assert "1 of 2 cases failed" in result.stderr, result
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["tile"] for row in rows] == ["960", "1000"], rows
    words[-1] = "1000"
    refused("(--extrapolate)", *words, "--n", "3840")


def copy_platform(folder, change):
    """idgraf under another name, changed."""
    document = json.loads((ROOT / "platforms/idgraf.json").read_text(encoding="utf-8"))
    change(document)
    (folder / "wrong.json").write_text(json.dumps(document), encoding="utf-8")
    return str(folder / "wrong.json")


def slower_gemm(document):
    for curve in document.get("curves", []):
        if (curve["kernel"], curve["arch"]) == ("dgemm", "c2050"):
            for point in curve["points"]:
                point["mean_s"] *= 1.5


def slower_link(document):
    for link in document.get("links", []):
        link["to_device"]["bandwidth_Bps"] /= 16
    for switch in document.get("switches", []):
        if "to_device_Bps" in switch:
            switch["to_device_Bps"] /= 16
    for gpu in document.get("gpus", []):
        gpu.pop("to_device_limit_Bps", None)


def culprit(case):
    """The largest part of the difference, but for those that a busy machine makes."""
    return next(part for part in case["explanation"]["parts"]
                if part["reason"] not in ("overhead", "idle", "spread"))


def test_planted_errors():
    """The explanation names first what was made wrong, in runs on one GPU, whose schedule cannot
    differ."""
    words = ("--n 7680 --tile 960 --emulate idgraf --scale 0.1 --cpus 0 --gpus 1 --policy heft"
             " --reps 3 --rounds 1 --sim-reps 1 --warmup 0 --keep-disturbed").split()
    with tempfile.TemporaryDirectory() as folder:
        wrong = copy_platform(pathlib.Path(folder), slower_gemm)
        words += ["--param", "potrf=any"]
        result = duet("cholesky", *words, "--platform", wrong, "--fail-over", "1%", "--json")
        case = json.loads(result.stdout)["cases"][0]
        first = culprit(case)
        assert first["what"] == "dgemm on c2050" and first["seconds"] > 0, case
        assert math.isclose(first["first"], 1.5 * first["second"], rel_tol=1e-3), first
        # a busy machine may take as much longer, by chance
        differs = abs(case["predicted"]["median_s"] / case["measured"]["median_s"] - 1) > 0.01
        assert result.returncode == differs, result
        assert ("1 of 1 cases differ by more than 1 %" in result.stderr) == differs, result
    with tempfile.TemporaryDirectory() as folder:
        wrong = copy_platform(pathlib.Path(folder), slower_link)
        words[1], words[words.index("heft")] = "3840", "ws"
        case = good_json("gemm", *words[:-2], "--platform", wrong)["cases"][0]
        first = culprit(case)
        assert first["reason"] == "to_device" and first["seconds"] > 0, case


def own_platform(folder):
    """Two cores that take about as long as some real ones."""
    curves = [{"kernel": kernel, "arch": "core", "origin": "this test", "points": [
        {"size": 0, "flops": flops, "mean_s": flops / 2e9, "deviation_s": flops / 2e10,
         "samples": 10} for flops in (1e4, 1e7)]}
              for kernel in ("dpotrf", "dtrsm", "dsyrk", "dgemm")]
    (folder / "mine.json").write_text(json.dumps({
        "schema": 1, "name": "mine", "description": "two cores", "calibration": "mine.kernels.json",
        "architectures": [{"name": "core", "backend": "cpu"}],
        "sockets": [{"architecture": "core", "cores": 2, "origin": "this test"}],
        "links": [], "peers": [], "switches": [], "gpus": [],
        "costs": {"submit_s": 1e-6, "push_s": 2e-7, "pop_s": 2e-7, "steal_s": 5e-7,
                  "kernel_launch_s": 0, "copy_launch_s": 0, "origin": "this test"}}),
        encoding="utf-8")
    (folder / "mine.kernels.json").write_text(json.dumps({"schema": 1, "curves": curves}),
                                              encoding="utf-8")


def test_real():
    """This machine, where there are kernels, against a platform file; with noise the simulated
    runs differ."""
    with tempfile.TemporaryDirectory() as name:
        own_platform(pathlib.Path(name))
        words = ["cholesky", "--n", "256", "--tile", "64", "--platform", "mine.json", "--no-noise"]
        if "in this duet" in duet(*words, *QUICK, cwd=name).stderr:
            return
        words += ["--reps", "4", "--rounds", "2", "--keep-disturbed"]
        case = good_json(*words, "--cpus", "1", cwd=name, elsewhere="mine.json")["cases"][0]
        assert (case["cpus"], case["gpus"]) == (1, 0), case
        assert len(case["predicted"]["makespans_s"]) == 1, case
        assert len(case["measured"]["makespans_s"]) == 4, case
        check_explanation(case)
        words.remove("--no-noise")
        case = good_json(*words, "--sim-reps", "5", cwd=name, elsewhere="mine.json")["cases"][0]
        assert case["cpus"] == 2 and len(set(case["predicted"]["makespans_s"])) == 5, case
        # the emulated GPUs are not on this platform
        refused("GPU", *words, "--emulate", "free", "--gpus", "1", "--cpus", "1", cwd=name)


CALIBRATE = ("cholesky --n 256 --tile 64 --calibrate --calibrate-time 0.2s --reps 2 --rounds 1"
             " --keep-disturbed --sim-reps 2").split()


def has_kernels():
    return "in this duet" not in duet("cholesky", "--platform", "idgraf", *QUICK).stderr


def test_calibrate():
    """What is measured along with the cases predicts them, and stays if that is asked for."""
    if not has_kernels():
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        world = {"cwd": folder, "env": {**os.environ, "TMPDIR": name}}
        report = good_json(*CALIBRATE, "--out", "mine.json", "--cpus", "1", **world)
        assert re.search(r"in the same \d+ (seconds|minutes): \d+ runs", report["calibration"]), \
            report["calibration"]
        case = report["cases"][0]
        assert case["failure"] is None and case["predicted"]["median_s"] > 0, case
        assert len(case["measured"]["makespans_s"]) == 2 and case["speed"] > 0, case
        check_explanation(case)
        assert sorted(os.listdir(folder)) == ["mine.json"]
        curves = json.loads((folder / "mine.json").read_text(encoding="utf-8"))["curves"]
        assert {point["size"] for curve in curves for point in curve["points"]} == {64}, curves
        # it can be predicted from again; there are no other files, and these may be replaced
        good_json("cholesky", "--n", "256", "--tile", "64", "--cpus", "1", "--platform",
                  "mine.json", *QUICK, **world)
        check_calibrating_interrupted(world)
        assert sorted(os.listdir(folder)) == ["mine.json"]


def check_calibrating_interrupted(world):
    output, messages = testing.interrupted("validate", *CALIBRATE, "--calibrate-time", "1000s",
                                           **world)
    # the first part of the calibration takes minutes: no run is measured before its end
    assert (output == "") == messages.endswith("duet: interrupted: 0 measured runs are finished\n")
    assert "duet: interrupted: " in messages, messages
    free = ["--emulate", "free", "--gpus", "1"] * (len(os.sched_getaffinity(0)) > 1)
    output = interrupted_later(*CALIBRATE, "--reps", "100000", "--rounds", "3", "--cpus", "1",
                               *free, **world)
    case, = json.loads(output)["cases"]
    assert case["measured"]["makespans_s"] and case["predicted"]["median_s"] > 0, case


def interrupted(*arguments, **options):
    output, messages = testing.interrupted("validate", *arguments, "--json", **options)
    assert re.search(r"^duet: interrupted: ", messages, re.MULTILINE), messages
    return output


def interrupted_later(*arguments, **options):
    """What a call prints that is interrupted when six runs of 20 tasks have begun in one process,
    as measured runs do: each simulated run has a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        begun, policy = pathlib.Path(name, "begun"), pathlib.Path(name, "mine.so")
        testing.compile_policy(policy, popped=testing.at_task(6 * 20, testing.touch(begun)))
        return interrupted(*arguments, "--policy", policy, when=lambda _: begun.exists(),
                           **options)


def test_load():
    """Somebody who computes beside it is seen, said to be there, and named in the report."""
    words = [word for word in PACED if word != "--keep-disturbed"]
    with busy():  # runs long enough for that to show
        result = duet(*words, "--scale", "0.2", "--without", "wake-ups", "--sim-reps", "1",
                      "--reps", "2", "--json")
    assert result.returncode == 0, result
    assert re.search(r"^duet: other processes use [0-9.]+ of [0-9]+ cores?", result.stderr,
                     re.MULTILINE), result
    report = json.loads(result.stdout)
    assert report["disturbed_rounds"], report
    assert all(1 <= number <= 2 for number in report["disturbed_rounds"]), report
    # where no round was quiet there is nothing to go by but the disturbed ones
    assert len(report["cases"][0]["measured"]["makespans_s"]) == 2 - report["left_out_runs"]


def test_interruption():
    """Cases are reported as far as they were measured; nothing is, while there are simulations."""
    output = interrupted_later(*PACED, "--reps", "100000", "--rounds", "50000")
    case = json.loads(output)["cases"][0]
    assert 1 <= len(case["measured"]["makespans_s"]) < 100000, case
    assert interrupted(*PACED, "--n", "96000", "--sim-reps", "1000", when=testing.children_of) == ""


testing.run_tests(globals())
