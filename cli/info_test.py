# SPDX-License-Identifier: Apache-2.0
"""`duet info`: this machine and what a run would use of it, in text and JSON, also with the fake
CUDA's GPUs where this build has them; bad input."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from testing import DUET, duet, refuse_all, run_tests

FAKE = os.environ.get("DUET_FAKE_CUDA", "")
HAS_FAKE = os.path.exists(FAKE)
# Where the machine is emulated: the command that opens none of NVIDIA's libraries, if it is there.
QUICK = FAKE if HAS_FAKE else DUET

BAD = [
    ("x", "not 'x'"),
    ("--cpus 0 --gpus 0", "at least one worker"),
    ("--gpus 900", "900 GPUs are wanted"),
    ("--emulate free --gpus 900", "900 emulated GPUs are wanted"),
    ("--emulate ''", "--emulate"),
    ("--emulate nope", "no platform is named nope"),
    ("--gpus 0 --gpu-window-short 1",
     "--gpu-window-short 1 is less than --gpu-window 2 (the default)"),
    ("--link pcie=1GB/s", "--link is for"),
    ("--emulate idgraf --link nope=1GB/s", "nope"),
    ("--emulate idgraf --cpus 99", "99"),
    ("--pin some", "--pin"),
    ("--emulate free --lose gpu1@1", "cannot lose 'gpu1'"),
    ("--emulate idgraf --lose gpu1@0", "from 1"),
    ("--machine-xml here.json", "must end in .xml"),
    ("--machine-xml /nope/here.xml", "cannot write /nope/here.xml: "),
    ("--emulate ./here.xml --machine-xml here.xml", "are one file"),
]


def info(*arguments, command=DUET, status=0, **environment):
    clean = {name: text for name, text in os.environ.items() if not name.startswith("FAKE_CUDA")}
    result = subprocess.run([command, "info", *arguments], capture_output=True, text=True,
                            env=dict(clean, **environment), check=False)
    assert result.returncode == status, (arguments, result)
    return result


def good(*arguments, **options):
    result = info(*arguments, **options)
    assert result.stderr == "", (arguments, result.stderr)
    for line in result.stdout.splitlines():
        assert line == line.rstrip(), repr(line)
    return result.stdout


def good_json(*arguments, **options):
    report = json.loads(good(*arguments, "--json", **options))
    assert (report["schema"], report["command"]) == (1, "info"), report
    machine = report["machine"]
    if machine:
        nodes = [node["name"] for node in machine["nodes"]]
        links = {link["name"] for link in machine["links"]}
        assert nodes[0] == "host" and len(set(nodes)) == len(nodes)
        assert all(worker["node"] in nodes for worker in machine["workers"])
        assert len(machine["routes"]) == len(nodes) * (len(nodes) - 1)
        for route in machine["routes"]:
            assert set(route["links"]) <= links
            assert route["direct"] == bool(route["links"]) == (route["bandwidth_Bps"] is not None)
    return report


def gpus(report):
    return [worker for worker in report["machine"]["workers"] if worker["node"] != "host"]


def cuda(report):
    return next(backend for backend in report["backends"] if backend["name"] == "cuda")


def unused(report):
    return {entry["what"]: entry["why"] for entry in report["unused"]}


def test_bad_input():
    refuse_all("info", BAD)


def test_this_machine():
    report = good_json()
    host, build = report["host"], report["build"]
    version = duet("--version", status=0)
    assert version.stdout == f"duet {build['version']}\n"
    assert 1 <= host["cores"] <= host["usable_cores"] <= host["usable_threads"] <= host["threads"]
    assert host["usable_threads"] == len(os.sched_getaffinity(0))
    assert 1 <= host["sockets"] <= host["usable_cores"]
    assert host["memory_bytes"] >= host["free_bytes"] > 0
    # less where a container limits the memory
    assert 0 < host["pin_bytes"] / host["memory_bytes"] < 0.751
    names = {backend["name"]: backend for backend in report["backends"]}
    assert {"cpu", "emulated", "cuda"} <= set(names)
    assert names["cpu"]["count"] == host["usable_cores"] and names["cpu"]["kind"] == "cores"
    # no GPU without a reason
    assert cuda(report)["count"] > 0 or cuda(report)["why"]
    workers = report["machine"]["workers"]
    threads = [worker["thread"] for worker in workers if worker["thread"] is not None]
    assert len(set(threads)) == len(threads) and set(threads) <= os.sched_getaffinity(0)
    text = good()
    commit = f", commit {build['commit']}" if build["commit"] else ""
    assert text.startswith(f"duet {build['version']}{commit}\n")
    if not cuda(report)["count"]:
        assert "no devices: " in text and cuda(report)["why"].split()[0] in text


def test_fewer_cores():
    """What is left over is said."""
    report = good_json("--cpus", "1", "--gpus", "0", "--no-bind", command=QUICK)
    cores = report["host"]["cores"]
    assert [(worker["name"], worker["thread"]) for worker in report["machine"]["workers"]] == [
        ("cpu0", None)]
    left = unused(report).get(f"{cores - 1} core{'' if cores == 2 else 's'}")
    assert left == ("--cpus 1" if cores > 1 else None), report["unused"]
    threads = sorted(os.sched_getaffinity(0))
    bound = subprocess.run(["taskset", "-c", str(threads[0]), QUICK, "info", "--json",
                            "--gpus", "0"], capture_output=True, text=True, check=True)
    report = json.loads(bound.stdout)
    assert report["host"]["usable_threads"] == report["host"]["cores"] == 1
    assert [worker["thread"] for worker in report["machine"]["workers"]] == [threads[0]]
    outside = [why for what, why in unused(report).items() if "hardware thread" in what]
    assert bool(outside) == (len(threads) > 1) and all("affinity" in why for why in outside)


def test_free_emulation():
    options = ["--emulate", "free", "--cpus", "1", "--gpus", "2", "--gpu-memory", "64MiB",
               "--gpu-window", "3", "--gpu-streams", "3"]
    report = good_json(*options, command=QUICK)
    machine = report["machine"]
    assert machine["emulation"] == "free" and machine["gpu_streams"] == 3
    assert [worker["name"] for worker in machine["workers"]] == ["cpu0", "gpu0", "gpu1"]
    for number, worker in enumerate(gpus(report)):
        assert worker["backend"] == "emulated" and worker["programmed_by"] == "cuda"
        assert worker["window"] == 3 and worker["node"] == f"gpu{number}"
    assert machine["nodes"][1:] == [{"name": f"gpu{number}", "capacity_bytes": 64 << 20}
                                    for number in range(2)]
    assert all(route["direct"] for route in machine["routes"])
    text = good(*options, command=QUICK)
    assert "machine of a run with --emulate free: 1 CPU (cpu) + 2 GPUs (emulated)\n" in text
    assert re.search(r"^  gpu1 +64\.0 MiB$", text, re.M), text
    assert re.search(r"^  gpu0 to gpu1 +[\d.]+ +[\d.]+ +\S+, \S+$", text, re.M), text
    assert re.search(r"^  kernels +up to 3 at once", text, re.M), text


def test_no_peer():
    options = ["--emulate", "idgraf", "--gpus", "2", "--no-peer", "--link", "pcie=12GB/s"]
    report = good_json(*options, command=QUICK)
    between = [route for route in report["machine"]["routes"]
               if "host" not in (route["source"], route["destination"])]
    assert len(between) == 2 and not any(route["direct"] for route in between)
    assert unused(report)["direct copies between GPUs"] == "--no-peer"
    assert {link["bandwidth_Bps"] for link in report["machine"]["links"]
            if link["name"].startswith("pcie")} == {12e9}
    text = good(*options, command=QUICK)
    assert re.search(r"^  gpu2 to gpu0 +through the host's memory$", text, re.M), text


def test_platform():
    """Of a platform; what runs have beside the machine is shown, and no part of it."""
    report = good_json("--emulate", "idgraf", command=QUICK)
    plain = report["machine"]
    assert plain["name"] == "idgraf" and plain["emulation"] == "paced"
    assert (plain["scale"], plain["gpu_streams"], plain["lose"]) == (None, 1, None)
    assert len(gpus(report)) == 8 and len(plain["workers"]) == 12
    assert {worker["architecture"] for worker in gpus(report)} == {"c2050"}
    assert all(worker["backend"] is None for worker in plain["workers"])
    assert "the cores of this machine" in unused(report), report["unused"]
    text = good("--emulate", "idgraf", "--scale", "10", "--lose", "gpu0@5", command=QUICK)
    assert "with --emulate idgraf: 4 CPUs (x5650) + 8 GPUs (c2050)\n" in text
    assert re.search(r"^  pcie0-to-device +5\.99  shared +to gpu0 gpu1$", text, re.M), text
    # many GPUs: a matrix, and no line a pair
    assert re.search(r"^  gpu0 +-( +[\d.]+){7}$", text, re.M) and "gpu0 to gpu1" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"^  times +10 times those of idgraf \(--scale\)", text, re.M), text
    assert re.search(r"^  to be lost +gpu0@5$", text, re.M), text
    many = good("--emulate", "idgraf", "--gpus", "24", command=QUICK)
    assert max(map(len, many.splitlines())) <= 100
    pairs = re.search(r"^  GPU to GPU +pairs\n((?:  .*[^ ] +\d+\n)+)", many, re.M)
    assert sum(int(line.split()[-1]) for line in pairs[1].splitlines()) == 24 * 23, many
    host = good("--emulate", "idgraf", "--gpus", "24", "--no-peer", command=QUICK)
    assert re.search(rf"^  through the host's memory +{24 * 23}$", host, re.M), host
    slow = good_json("--emulate", "idgraf", "--scale", "10", "--lose", "gpu0@5",
                     command=QUICK)["machine"]
    assert (slow["scale"], slow["lose"]) == (10, "gpu0@5")
    assert slow["links"] == plain["links"] and slow["routes"] == plain["routes"]


def test_machine_file():
    """The machine as a file; with kernel times beside it, it can be simulated."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "here.xml"
        good("--emulate", "free", "--gpus", "2", "--cpus", "1", "--machine-xml", str(path),
             command=QUICK)
        assert sorted(os.listdir(folder)) == ["here.xml"]
        again = good_json("--emulate", str(path), command=QUICK)["machine"]
        assert [worker["name"] for worker in again["workers"]] == ["cpu0", "gpu0", "gpu1"]
        simulate = [DUET, "simulate", "gemm", "--platform", str(path), "--n", "960", "--tile",
                    "480"]
        result = subprocess.run(simulate, capture_output=True, text=True, check=False)
        assert result.returncode == 2, result
        assert "property duet.calibration" in result.stderr, result.stderr
        times = {"schema": 1, "curves": [
            {"kernel": "dgemm", "arch": arch, "origin": "made up",
             "points": [{"size": 480, "flops": 2 * 480.0 ** 3, "mean_s": seconds,
                         "deviation_s": 0, "samples": 1}]}
            for arch, seconds in (("cpu", 0.01), ("emulated", 0.001))]}
        (pathlib.Path(folder) / "times.json").write_text(json.dumps(times), encoding="utf-8")
        text = path.read_text(encoding="utf-8")
        head = re.search(r"<zone [^>]*>", text)
        path.write_text(text[:head.end()]
                        + '<prop id="duet.calibration" value="times.json"/>' + text[head.end():],
                        encoding="utf-8")
        result = subprocess.run(simulate, capture_output=True, text=True, check=False)
        assert result.returncode == 0 and "2 GPUs (emulated)" in result.stdout, result
        assert sorted(os.listdir(folder)) == ["here.xml", "times.json"]


def test_fake_devices():
    """Two GPUs of the fake CUDA, all of them or one."""
    if not HAS_FAKE:
        return
    options = {"command": FAKE, "FAKE_CUDA_DEVICES": "2", "FAKE_CUDA_MEMORY": str(4 << 30)}
    report = good_json(**options)
    devices = cuda(report)["devices"]
    assert cuda(report)["count"] == 2 and cuda(report)["why"] is None
    assert [device["index"] for device in devices] == [0, 1]
    for device in devices:
        assert 0 < device["usable_bytes"] <= device["total_bytes"] == 4 << 30, device
        assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", device["pci"])
        assert re.fullmatch(r"[a-z0-9-]+", device["architecture"])
    assert report["build"]["cuda"]["libraries"] is True
    workers = gpus(report)
    assert [(worker["name"], worker["backend"], worker["device"]) for worker in workers] == [
        ("gpu0", "cuda", 0), ("gpu1", "cuda", 1)]
    for node, device in zip(report["machine"]["nodes"][1:], devices):
        assert 0 < node["capacity_bytes"] < device["usable_bytes"], (node, device)
    text = good("--pin", "1TiB", **options)
    assert re.search(r"^  cuda +2 devices: ", text, re.M), text
    assert "up to 1.0 TiB of the memory" in text and max(map(len, text.splitlines())) <= 100, text
    assert re.search(r"that is more\s+than\s+there is", text), text
    assert "(--pin none)" in good("--pin", "none", **options)
    assert f"PCI {devices[1]['pci']}" in text.replace("\n" + " " * 16, " "), text
    one = good_json("--gpus", "1", **options)
    assert len(gpus(one)) == 1
    assert unused(one)[f"cuda device 1, {devices[1]['pci']}"] == "--gpus 1", one["unused"]


def test_fake_troubles():
    """No device, no peers, a device that cannot be described: said, and never a failure."""
    if not HAS_FAKE:
        return
    none = good_json(command=FAKE)
    assert cuda(none)["count"] == 0 and cuda(none)["why"] and not gpus(none)
    apart = good_json(command=FAKE, FAKE_CUDA_DEVICES="2", FAKE_CUDA_PEERS="0")
    between = [route for route in apart["machine"]["routes"]
               if "host" not in (route["source"], route["destination"])]
    assert len(between) == 2 and not any(route["direct"] for route in between)
    # both when looked at, and when the machine is made: another program has all its memory
    full = {"command": FAKE, "FAKE_CUDA_DEVICES": "2",
            "FAKE_CUDA_FAIL": "cudaMemGetInfo@1=2,cudaMemGetInfo@3=2"}
    broken = good_json(**full)
    assert [device["why"] is None for device in cuda(broken)["devices"]] == [False, True]
    assert "cudaMemGetInfo" in cuda(broken)["devices"][0]["why"]
    assert [worker["device"] for worker in gpus(broken)] == [1], gpus(broken)
    assert "cudaMemGetInfo" in unused(broken)["cuda device 0"]
    assert "0: cannot be used: " in good(**full)
    # something that no machine can be made without
    torn = {"command": FAKE, "FAKE_CUDA_DEVICES": "2",
            "FAKE_CUDA_FAIL": "cudaDeviceCanAccessPeer@1=999"}
    report = good_json(**torn)
    assert report["machine"] is None and "cudaDeviceCanAccessPeer" in report["machine_why"]
    assert "\nno machine for a run\n" in good(**torn)
    with tempfile.TemporaryDirectory() as folder:
        result = info("--machine-xml", f"{folder}/here.xml", status=1, **torn)
        assert os.listdir(folder) == []
    assert re.fullmatch(r"duet: .*cudaDeviceCanAccessPeer.*\n", result.stderr), result.stderr


run_tests(globals())
if not HAS_FAKE:
    print("without the fake CUDA")
