# SPDX-License-Identifier: Apache-2.0
"""What is suspicious in platforms is said: by `duet platform check`, `duet list kernels` and
`duet simulate`; and what factors of links leave as it was."""

import json
import os
import pathlib
import re
import tempfile

from testing import ROOT, duet, refused, run_tests


def changed(folder, change):
    """The path of idgraf with a change."""
    machine = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
    change(machine)
    path = pathlib.Path(folder) / "changed.json"
    path.write_text(json.dumps(machine), encoding="utf-8")
    return path


def curve(machine, kernel, arch):
    return next(c for c in machine["curves"] if (c["kernel"], c["arch"]) == (kernel, arch))


def slow_links(machine):
    machine["links"][0]["to_device"]["latency_s"] = 8
    for gpu in machine["gpus"]:
        gpu.pop("to_device_latency_s", None)


def slow_steals(machine):
    machine["costs"]["steal_s"] = 0.5


def too_fast(machine):
    for point in curve(machine, "dtrsm", "c2050")["points"]:
        point["mean_s"] /= 100


def faster_than_gemm(machine):
    for point in curve(machine, "dtrsm", "c2050")["points"]:
        point["mean_s"] /= 4


def milliseconds(machine):
    curve(machine, "dgemm", "c2050")["points"][2]["mean_s"] *= 1000


def misspelt(machine):
    curve(machine, "dgemm", "c2050")["kernel"] = "dgem"


def misspelt_everywhere(machine):
    for one in machine["curves"]:
        one["kernel"] = "dgemmm" if one["kernel"] == "dgemm" else one["kernel"]


def impossible(machine):
    """Faster than the chip, the product itself, which others are compared with."""
    for point in curve(machine, "sgemm", "c2050")["points"]:
        point["mean_s"] /= 3


def test_check():
    good = duet("platform", "check", "idgraf", "attila", "mirage", "sirocco", status=0)
    assert good.stdout.count("nothing is suspicious") == 4, good
    for change, fragment in [
            (slow_links, "copies from host to gpu0 wait 8 s before they begin"),
            (slow_steals, "costs.steal_s is 0.5 s"),
            (too_fast, "GFlop/s) than the data sheet of c2050 allows"),
            (impossible, "sgemm on c2050 of work 1.76947e+09 is faster (1883 GFlop/s)"),
            (faster_than_gemm, "GFlop/s) than dgemm ever is"),
            (misspelt_everywhere, "no workload has a kernel dgemmm: is it dgemm, which has no"),
            (milliseconds, "takes 5.91026 s, 253 times off the neighbouring sizes"),
            (misspelt, "no times of dgemm on c2050, dgem on x5650, of kernels that others have")]:
        with tempfile.TemporaryDirectory() as folder:
            path = changed(folder, change)
            result = duet("platform", "check", path, status=1)
            assert fragment in result.stdout, (fragment, result)
            assert result.stdout.startswith(f"{path}: "), result
    assert duet("platform", "check", "nowhere").returncode == 2
    assert duet("platform", "check").returncode == 2
    assert duet("platform").returncode == 2


def test_holes():
    """A kernel without times on one architecture runs on others, and that is said once."""
    with tempfile.TemporaryDirectory() as folder:
        path = changed(folder, misspelt)
        result = duet("list", "kernels", "--platform", path)
        assert "no times: dgemm on c2050, dgem on x5650" in result.stdout, result
        assert "no times" not in duet("list", "kernels", "--platform", "idgraf").stdout
        words = ["simulate", "cholesky", "--n", 1920, "--policy", "ws,heft", "--reps", 2]
        result = duet(*words, "--platform", path, status=0)
        assert result.stderr.count("has no times of dgemm on c2050") == 1, result
        result = duet(*words[:-4], "--platform", path, "--gpus", 0)
        assert "no times" not in result.stderr, result  # nothing there misses them


# What is asked for, and a fragment of the message.
BAD_MACHINES = [
    ("", "which CPUs? --cpus SOCKETSxCORES:DEVICE"),
    ("--cpus 2x200", "epyc-9654 has 96 cores, not 200"),
    ("--cpus 0x4", "--cpus takes a whole number from 1"),
    ("--cpus 2", "--cpus takes SOCKETSxCORES"),
    ("--cpus 2x4:i386", "no CPU is named 'i386', known are: epyc-9654, "),
    ("--cpus 2x4 --gpus 4:a101", "no GPU is named 'a101', known are: b200, "),
    ("--cpus 2x4 --gpus 4", "--gpus takes NUMBER:DEVICE"),
    ("--cpus 2x4 --gpus 1:a100 --gpus 1:a100", "a100 is given twice"),
    ("--cpus 2x1 --gpus 4:a100", "4 GPUs need a core each, bad has 2"),
    ("--cpus 2x4 --gpus 4:a100 --pcie-switches 5", "some would have none"),
    ("--cpus 2x4 --gpus 4:rtx4090 --nvlink", "rtx4090 has no links for --nvlink"),
    ("--cpus 2x4 --gpus 4:mi300x --nvswitch", "no switches for Infinity Fabric of mi300x"),
    ("--cpus 2x16 --gpus 20:a100 --nvlink", "too few for each of 19 others: --nvswitch"),
    ("--cpus 2x4 --gpus 1:rtx4090 --gpus 1:k40m --nvlink", "for --nvlink, nor have the others"),
    ("--cpus 2x4 --nvswitch", "a machine without --gpus has no links for --nvswitch"),
    ("--cpus 2x4 --gpus 2:a100 --nvlink --nvswitch", "exclude each other"),
    ("--cpus 2x4 --gpus 2:a100 --link qpi=2x", "no link is named qpi (known: pcie, "),
    ("--cpus 2x4 --gpus 2:a100 --link pcie", "--link takes NAME=BANDWIDTH"),
    ("--cpus 2x4 --gpus 2:a100 --link pcie=12000000000",
     "with its unit, such as 12GB/s or 12000000000B/s, or a factor such as 2x"),
    ("--cpus 2x4 mine", "takes options only, not 'mine'"),
]


def test_new():
    """Machines are read again and simulated; what they rest on is said."""
    lines = duet("list", "devices").stdout.splitlines()
    with open(lines[-1].split(": ")[1], encoding="utf-8") as file:
        said = json.load(file)["devices"]
    devices = [device["name"] for device in said]
    assert {"a100", "h100", "h200", "b200", "rtx4090", "mi250x", "mi300x"} < set(devices), devices
    rows = {line.split()[0]: line for line in lines if line.split()[:1] and line[0] != " "}
    for device in said:
        assert rows[device["name"]].endswith("partly" if "unconfirmed" in device else "yes"), device
    assert set(devices) < set(rows) and max(map(len, lines[:-1])) <= 101, lines
    with tempfile.TemporaryDirectory() as folder:
        for path, *parts in ((f"{folder}/power9.json", "--cpus", "2:power9"),
                             (f"{folder}/mi100.json", "--cpus", "2x4", "--gpus", "4:mi100")):
            made = duet("platform", "new", *parts, "--out", path, status=0)
            assert made.stdout.startswith(path), made
            result = duet("simulate", "cholesky", "--platform", path, "--n", 9600, "--policy",
                          "heft", "--json", status=0)
            assert (
                json.loads(result.stdout)["runs"][0]["estimated"] == "dpotrf, dtrsm, dsyrk, dgemm")
        again = duet("platform", "new", "--cpus", "1x2", "--out", path, status=2)
        assert "--replace writes over it" in again.stderr, again
        assert duet("platform", "new", "--cpus", "1x2", "--out", path, "--replace").returncode == 0
        chart, trace = os.path.join(folder, "x.svg"), os.path.join(folder, "x.trace")
        words = ["cholesky", "--platform", path, "--n", 1920, "--tile", 192]
        table = duet("simulate", *words, "--gantt", chart, "--trace", trace)
        for name, fragment in (chart, "; estimated kernel times"), (trace, '"estimated":"dpotrf, '):
            with open(name, encoding="utf-8") as file:
                assert fragment in file.read(4000).replace(": ", ":"), name
        head = table.stdout.split("\n\n")[0]
        assert "\nestimated, not measured: times of dpotrf, " in head, table
        rows = duet("simulate", *words, "--csv")
        assert "estimated" in rows.stderr, rows
        assert "estimated" not in rows.stdout.replace("basis_estimated", ""), rows
        graph = os.path.join(folder, "graph.json")
        duet("export", *words, "--out", graph)
        with open(graph, encoding="utf-8") as file:
            assert "; estimated: times of dpotrf, " in json.load(file)["origin"]
        head = duet("simulate", graph, "--platform", path).stdout.split("\n\n")[0]
        assert re.search(r"\nestimated, .*: times of tasks .* 100 % as for it, estimated", head)
        assert "estimated" not in duet("simulate", graph, "--platform", "idgraf").stdout
        for words in ("explain", trace, "--no-what-if"), ("compare", trace, trace):
            assert "; estimated" in duet(*words).stdout.split("\n\n")[0], words
        path = os.path.join(folder, "bad.json")
        for words, fragment in BAD_MACHINES:
            result = duet("platform", "new", *words.split(), "--out", path)
            refused(result, fragment)
            assert not os.path.exists(path), words
        lost = duet("platform", "new", "--cpus", "1x2", "--out", os.path.join(folder, "no/x.json"),
                    status=2)
        assert "there is no folder" in lost.stderr, lost
        for words in ["platform new --cpus 1x2", "platform check --gpus 1:a100 idgraf"]:
            assert duet(*words.split()).returncode == 2, words


def makespan(*words):
    result = duet("simulate", "cholesky", "--platform", "idgraf", "--n", 3840, "--policy", "heft",
                  "--no-costs", "--json", *words, status=0)
    return json.loads(result.stdout)["runs"][0]["makespan_s"]["median"], result.stderr


def test_links():
    usual = makespan()
    assert makespan("--link", "all=1x") == usual
    faster, said = makespan("--link", "all=2x")
    assert faster < usual[0] and "keep" not in said, (faster, usual, said)
    slower, said = makespan("--link", "pcie=0.25x")
    assert slower > usual[0], (slower, usual)
    assert "--link leaves peer_switch, peer_socket, peer_remote as they are" in said, said
    for more in "--no-peer", "--quiet":
        assert "as they are" not in makespan("--link", "pcie=0.25x", more)[1], more
    for text in "pcie=x", "pcie=0x", "pcie=-2x", "all=twice", "every=2x":
        result = duet("simulate", "cholesky", "--platform", "idgraf", "--link", text, status=2)
        assert "link" in result.stderr, (text, result)


run_tests(globals())
