# SPDX-License-Identifier: Apache-2.0
"""`duet calibrate`: its files can be simulated with, old ones stay whole, bad input is refused."""

import fcntl
import json
import os
import pathlib
import re
import subprocess
import tempfile

from testing import DUET, busy, duet, good, has_open, interrupted, refuse_all, until

# One round of little problems: what is asked is whether it works, not how well.
TINY = "cholesky --n 512 --tile 128 --reps 1 --budget 0.3s".split()

# At a platform's pace, where nothing computes, a calibration takes a third of that.
PACED = ("cholesky --n 1280 --tile 320 --reps 1 --budget 0.1s --emulate idgraf --cpus 1 --gpus 1"
         " --scale 0.01 --no-copies --no-costs").split()

# (arguments after those of TINY where they begin with a +; what the message says)
BAD = [
    ("fish", "unknown workload 'fish', known are: cholesky"),
    ("gemm gemm", "'gemm' is named twice"),
    ("layered", "layered has no kernels that compute"),
    ("+ --csv", "--csv"),
    ("+ --n ''", "--n takes a list"),
    ("+ --n 512,512", "--n names 512 twice"),
    ("+ --tile 1024", "cholesky: "),
    ("+ --precision x", "--precision is s (single), d (double), or sd for both"),
    ("+ --budget 60", "--budget takes a time with its unit, such as 250ns, 1us, 90s"),
    ("+ --policy ws,heft", "calibration takes one policy"),
    ("+ --replace --merge", "exclude each other"),
    ("+ --out x.txt", "must end in .json"),
    ("+ --out /nope/x.json", "/nope/x.json"),
    ("+ --out plain/x.json", "plain/x.json"),
    ("+ --name a/b", "'a/b' cannot be the name of a machine"),
    ("+ --name 0123456789012345678901234567890x", "1 to 31 letters"),
    ("+ --out idgraf.json --merge", "idgraf.json: name: missing"),
]

CONDITIONS = ["warm_alone", "cold_alone", "warm_busy", "cold_busy"]


def calibrate(*arguments):
    return json.loads(good("calibrate", *arguments, "--json"))


def contents():
    return {path.name: path.read_bytes() for path in pathlib.Path(".").iterdir() if path.is_file()}


def simulate(platform, tile, *more):
    return duet("simulate", "cholesky", "--platform", platform, "--n", str(4 * tile), "--tile",
                str(tile), *more)


def check_bad():
    pathlib.Path("plain").write_text("no folder\n", encoding="utf-8")
    pathlib.Path("idgraf.json").write_text('{"schema": 1}\n', encoding="utf-8")
    before = contents()
    refuse_all("calibrate", BAD, TINY)
    assert contents() == before


def check_report(report):
    assert report["schema"] == 2 and report["command"].startswith("duet calibrate cholesky")
    machine = report["machine"]
    assert machine["name"] == "real" and machine["cpus"] >= 1 and machine["gpus"] == 0
    assert machine["probe_s"] > 0 and machine["bandwidth_Bps"] > 0
    kinds = [(run["workers"], run["n"], run["tile"], run["runs"] > 0) for run in report["runs"]]
    assert kinds[0] == ("alone", 512, 128, True), kinds
    assert kinds[1:] == [("busy", 512, 128, True)] * (machine["cpus"] > 1), kinds
    assert {kernel["kernel"] for kernel in report["kernels"]} == \
        {"dpotrf", "dtrsm", "dsyrk", "dgemm"}
    for kernel in report["kernels"]:
        assert kernel["architecture"] == "cpu" and kernel["workload"] == "cholesky"
        assert kernel["tile"] == 128 and kernel["mean_s"] > 0 and kernel["samples"] > 0
        seen = [kernel[name] for name in CONDITIONS if kernel[name]]
        assert sum(one["samples"] for one in seen) == kernel["samples"], kernel
    for cost in report["costs"]:
        assert (cost["samples"] > 0) == (cost["median_s"] is not None) == (cost["why"] is None)
    assert report["quality"]["samples"] == sum(one["samples"] for one in report["kernels"])
    assert report["copies"] == report["links"] == []


def check_files():
    """Writing, refusing, merging, replacing, being interrupted."""
    check_report(calibrate(*TINY, "--out", "real.json"))
    assert simulate("./real.json", 128).returncode == 0
    report = calibrate(*PACED, "--gpus", "2", "--out", "mine.json")
    assert {kernel["architecture"] for kernel in report["kernels"]} == {"x5650", "c2050"}
    result = simulate("./mine.json", 320, "--set-arch", "--json")
    assert json.loads(result.stdout)["runs"][0]["gpus"] == 2
    assert simulate("./mine.json", 480).returncode == 2
    written = contents()

    result = duet("calibrate", *PACED, "--out", "mine.json", status=2)
    assert "--replace" in result.stderr, result
    check_interrupt()
    assert contents() == written

    text = merge("calibrate", *PACED, "--gpus", "2", "--n", "1920", "--tile", "480", "--out",
                 "mine.json", "--merge")
    assert text.startswith("mine: ") and "dpotrf" in text and "--platform ./mine.json" in text, text
    assert "operations" not in text
    # one sentence has how well is predicted, and what is left out of that
    assert re.search(r"Without outliers, half of the \d+ kernel times are predicted within .* off; "
                     r"outliers are [0-9.]+ % of the executions and [0-9.]+ % of their"
                     r" time, which simulations contain with --noise", " ".join(text.split())), text
    for tile in 480, 320:
        assert simulate("./mine.json", tile).returncode == 0, tile
    calibrate(*PACED, "--out", "mine.json", "--replace")
    assert simulate("./mine.json", 480).returncode == 2
    assert set(contents()) == set(written)


def merge(*words):
    """While a program adds to the file, it waits for that."""
    path = pathlib.Path("mine.json.lock")
    with path.open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen([DUET, *words], stdout=subprocess.PIPE, text=True)
        until(lambda: process.poll() is not None or has_open(process, path))
        path.unlink()
    text = process.communicate()[0]
    assert process.returncode == 0 and not path.exists(), text
    return text


def check_interrupt():
    output, errors = interrupted("calibrate", *PACED, "--budget", "1000s", "--reps", "100000",
                                 "--out", "mine.json", "--replace")
    assert output == "" and "duet: interrupted: mine.json stays as it was\n" in errors, errors


def check_failure():
    """What fails is said, and costs nothing of what was measured before and after it."""
    result = duet("calibrate", "cholesky", "--n", "256,1000064,512", "--tile", "128", "--reps", "2",
                  "--budget", "0.3s", "--no-costs", "--cpus", "1", "--out", "partial.json",
                  "--json", status=1)
    assert re.search(r"^duet: cholesky, n 1000064, tile 128, d, alone failed: no memory for a "
                     r"matrix", result.stderr, re.MULTILINE), result.stderr
    assert result.stderr.count("no memory") == 1, result.stderr
    report = json.loads(result.stdout)
    assert {run["n"] for run in report["runs"]} == {256, 512} and report["rounds"] == 2, report
    assert simulate("./partial.json", 128).returncode == 0

    result = duet("calibrate", "cholesky", "--budget", "0.1s", "--cpus", "1", "--out",
                  "nothing.json", status=2)
    assert "has no time to run anything" in result.stderr, result
    result = duet("calibrate", *TINY, "--n", "1000064", "--no-costs", "--cpus", "1", "--out",
                  "nothing.json", status=1)
    assert result.stdout == "", result
    assert "no memory" in result.stderr and not pathlib.Path("nothing.json").exists(), result


def check_name():
    """The name makes the file."""
    report = calibrate(*PACED, "--name", "box", "--precision", "s")
    assert report["out"] == "box.json" and report["machine"]["name"] == "box"
    assert {kernel["kernel"][0] for kernel in report["kernels"]} == {"s"}
    assert simulate("./box.json", 320, "--precision", "s").returncode == 0


def check_uneven():
    """Uneven tasks are measured with even ones, a size each tile; between them times are known."""
    report = json.loads(good(*"calibrate sort --cpus 1 --tile 16,256 --n 2048 --reps 1 --no-copies"
                             " --budget 0.1s --no-costs --json --out uneven.json".split()))
    assert [kernel["work"] for kernel in report["kernels"]] == [16 * 15 / 2, 256 * 255 / 2], report
    duet(*"simulate sort --platform ./uneven.json --n 4000 --tile 128 --cpus 1".split(), status=0)


def check_emulation():
    """Devices that cores compute for."""
    report = calibrate(*TINY, "--emulate", "free", "--cpus", "1", "--gpus", "1", "--out",
                       "free.json", "--no-costs")
    assert report["machine"]["gpus"] == 1 and report["runs"][-1]["workers"] == "gpus"
    assert {kernel["architecture"] for kernel in report["kernels"]} == {"cpu", "emulated"}
    assert [link["gpus"] for link in report["links"]] == [["gpu0"]]
    assert {(copy["source"], copy["destination"]) for copy in report["copies"]} == \
        {("host", "gpu0"), ("gpu0", "host")}
    assert simulate("./free.json", 128, "--set-arch").returncode == 0
    # one core has them take turns, whatever was measured: here all kernels take a millisecond
    described = json.loads(pathlib.Path("free.json").read_text(encoding="utf-8"))
    for curve in described["curves"]:
        curve["points"] = [{"size": point["size"], "work": point["work"], "mean_s": 1e-3,
                            "deviation_s": 0, "samples": 1} for point in curve["points"]]
    pathlib.Path("one.json").write_text(json.dumps({**described, "cores": 1}), encoding="utf-8")
    alone, sharing = (json.loads(simulate("./one.json", 320, "--extrapolate", "--json",
                                          *without).stdout)["runs"][0]["makespan_s"]["median"]
                      for without in (("--without", "cores"), ()))
    assert sharing > 1.2 * alone, (sharing, alone)


def check_load():
    """Somebody who computes beside it is seen, said to be there, and named in the report."""
    with busy():  # runs that are long enough for that to show
        result = duet("calibrate", *PACED, "--n", "3840", "--tile", "960", "--scale", "0.2",
                      "--out", "loaded.json", "--json")
    assert result.returncode == 0, result
    assert re.search(r"^duet: other processes use [0-9.]+ of [0-9]+ cores?", result.stderr,
                     re.MULTILINE), result
    report = json.loads(result.stdout)
    assert report["others_cores"] > 0.1 and report["disturbed_rounds"] == [1], report
    # in a single round nothing of these problems was quiet: better disturbed figures than none
    assert report["left_out_runs"] == 0 and report["kernels"], report


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check_bad()
    check_files()
    check_failure()
    check_name()
    check_uneven()
    check_emulation()
    check_load()
    os.chdir("/")
