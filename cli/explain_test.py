# SPDX-License-Identifier: Apache-2.0
"""`duet explain` names the cause of planted problems; its parts add up; what is no trace is refused
with one line."""

import json
import math
import os
import pathlib
import re
import subprocess
import tempfile

from testing import DUET, ROOT, duet, refused

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()


def explain(folder, problem, *options, platform="idgraf"):
    """What is said of a simulated run; whatever it is, it adds up."""
    trace = str(folder / "trace.json")
    world = ["simulate", "--platform", platform] if platform else ["run", "--emulate", "free"]
    duet(*world, *problem.split(), "--quiet", "--trace", trace, status=0)
    result = duet("explain", trace, "--json", *options, status=0)
    found = json.loads(result.stdout)
    makespan = found["makespan_s"]
    steps = found["path"]["steps"]
    assert steps[0]["start_s"] == 0 and math.isclose(steps[-1]["end_s"], makespan), found
    for before, after in zip(steps, steps[1:]):
        assert before["end_s"] == after["start_s"], (before, after)
    parts = [sum(part["seconds"] for part in found["path"]["parts"]),
             *(sum(worker["seconds"].values()) for worker in found["workers"])]
    assert all(math.isclose(part, makespan, rel_tol=1e-9) for part in parts), (parts, makespan)
    if found["what_if"] and platform == "idgraf":
        # the run itself, to the nanoseconds that a trace has; small ones decide what comes first
        tolerance = 0.03 if "--extrapolate" in problem else 1e-4
        assert math.isclose(found["what_if"]["reference_s"], makespan, rel_tol=tolerance), found
    return found


def gains(found):
    return {change["what"]: change["gain"] for change in found["what_if"]["changes"]}


def best(found, buys=None):
    return next(change["what"] for change in found["what_if"]["changes"]
                if not change["bound"] and (buys is None or change["buys"] == buys))


def test_slow_link(folder):
    for policy, options in ("heft", ["--no-what-if"]), ("dmdas", []):
        found = explain(folder, f"cholesky --n 9600 --tile 960 --policy {policy} --link pcie=0.1x",
                        *options)
        assert found["cause"] == "to_device" and "from the host" in found["sentence"], found
    assert best(found) == "links twice as fast", found["what_if"]
    # no direction alone is a quarter, but all are together: both are said
    found = explain(folder, "cholesky --n 9600 --policy heft --link pcie=1GB/s", "--no-what-if")
    shares = [int(share) for share in re.findall(r"(\d+) %", found["sentence"])]
    waits = sum(part["seconds"] for part in found["path"]["parts"]
                if part["what"].startswith(("copies", "making room")))
    assert found["cause"] == "to_device" and max(shares[:2]) < 25 <= shares[2], found
    assert abs(waits / found["makespan_s"] - shares[2] / 100) < 0.0051, found
    # less than a quarter, but several times what GPUs have no tasks for
    found = explain(folder, "gemm --n 4800 --policy heft --link pcie=4GB/s", "--no-what-if")
    assert found["cause"] in ("to_device", "between"), found
    assert "waiting for data" in found["sentence"] and "room" in found["sentence"], found
    # ws takes no notice of links, and lets CPUs compute what others would not
    found = explain(folder, "cholesky --n 9600 --tile 960 --policy ws --link pcie=0.1x")
    assert found["cause"] == "choice" and best(found).startswith("policy "), found


def test_missing_kernel(folder):
    path = folder / "without.json"
    platform = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
    platform["curves"] = [curve for curve in platform["curves"]
                          if (curve["kernel"], curve["arch"]) not in (("dgemm", "c2050"),
                                                                      ("dtsqrt", "c2050"))]
    path.write_text(json.dumps(platform), encoding="utf-8")
    found = explain(folder, "cholesky --n 9600 --tile 960 --policy heft --hold",
                    platform=str(path))
    assert found["cause"] == "kernel", found
    assert found["sentence"].startswith("dgemm on x5650 is"), found
    assert "no GPU may run it (no code for them, or no time" in found["sentence"], found
    assert best(found, True) == "dgemm on x5650 twice as fast", found["what_if"]
    # another reason is the workload's own setting
    found = explain(folder, "cholesky --n 3840 --policy heft", "--no-what-if")
    assert found["cause"] == "kernel" and found["sentence"].startswith("dpotrf on x5650 is"), found
    assert "(--param potrf=any lets them run it)" in found["sentence"], found
    for panel, reason in ("", "no GPU may run it"), (" --param panel=cpu", "(--param panel=any "):
        found = explain(folder, "qr --n 3840 --tile 960 --policy heft" + panel, "--no-what-if",
                        platform=str(path))
        assert found["sentence"].startswith("dtsqrt") and reason in found["sentence"], found


def test_tiny_memory(folder):
    found = explain(folder, "cholesky --n 9600 --tile 960 --cpus 1 --gpus 2 --gpu-memory 1% "
                            "--policy dmdas")
    assert found["cause"] == "memory" and "too small" in found["sentence"], found
    assert best(found) == "GPU memory twice as large", found["what_if"]
    gpus = found["memories"][1:]
    assert all(0 < memory["again_bytes"] < memory["in_bytes"] and
               memory["peak_bytes"] <= memory["capacity_bytes"] for memory in gpus), gpus
    found = explain(folder, "cholesky --n 9600 --tile 960 --policy heft", "--no-what-if")
    assert found["what_if"] is None and not any(memory["again_bytes"]
                                                for memory in found["memories"]), found


def test_bad_priorities(folder):
    graph = folder / "graph.json"
    duet("export", *"cholesky --n 9600 --tile 960 --platform idgraf --out".split(), str(graph),
         status=0)
    good = json.loads(graph.read_text(encoding="utf-8"))
    run = f"{graph} --policy dmdas --cpus 1 --gpus 2"
    assert explain(folder, run, "--no-what-if")["cause"] != "priorities"
    for task in good["tasks"]:
        task["priority"] = -task.get("priority", 0)
    graph.write_text(json.dumps(good), encoding="utf-8")
    found = explain(folder, run)
    assert found["cause"] == "priorities" and "order of tasks" in found["sentence"], found
    assert gains(found)["priorities bottom-level"] > 0.1, found["what_if"]
    # no order is called bad to which other policies and priorities, simulated, are no better
    run = "cholesky --n 9600 --cpus 3 --gpus 3 --policy dmdas --noise --seed 574 --extrapolate"
    assert explain(folder, run, "--no-what-if")["cause"] == "priorities"
    found = explain(folder, run)
    assert found["cause"] != "priorities" and all(
        gain < 0.05 for what, gain in gains(found).items() if what.startswith(("policy", "prior")))


def test_wrong_tile(folder):
    # sixteen tiles, of which hardly two can be computed at once
    found = explain(folder, "lu --n 3840 --tile 960 --policy heft")
    assert best(found, False) == "tile 480", found["what_if"]
    # tiles so small that copies take their latency
    found = explain(folder, "cholesky --n 1440 --tile 60 --cpus 1 --gpus 2 --policy dmdas "
                            "--extrapolate")
    assert "larger tiles" in found["sentence"] and best(found) == "tile 120", found
    assert gains(found)["tile 120"] > 2 * gains(found)["links twice as fast"], found["what_if"]
    # not where they were simulated and do not help
    found = explain(folder, "cholesky --n 720 --tile 90 --policy dmdas --extrapolate")
    assert "take their latency." in found["sentence"] and gains(found)["tile 180"] < 0, found


def test_settings(folder):
    # the run without a change is the same run, whatever was set
    explain(folder, "cholesky --n 5760 --tile 960 --cpus 2 --gpus 2 --policy dmdas --set-arch "
                    "--gpu-window 5 --window 40 --no-peer --link pcie=0.5x --nearest-source "
                    "--priorities bottom-level --costs submit=50us,steal=20us --model-error 0.3 "
                    "--noise --seed 3")
    # models that know nothing know the times of a graph: that it is another run is said
    explain(folder, "cholesky --n 5760 --policy dmdas --learn", "--no-what-if")
    assert "Simulated without a change it takes" in duet("explain",
                                                         str(folder / "trace.json")).stdout
    trace = folder / "trace.json"
    trace.write_text(trace.read_text(encoding="utf-8").replace("learn=1", "lern=1"),
                     encoding="utf-8")
    assert "there is no setting 'lern'" in duet("explain", str(trace)).stderr


def test_interval(folder):
    """The figure that makes an interval wide is named by simulations, or that they do not tell."""
    found = explain(folder, "cholesky --n 15360 --tile 1920 --extrapolate --policy heft",
                    "--interval", "run")["interval"]
    first = found["held"][0]
    told = found["tied"], first["name"], found["simulations"]
    assert told == (1, "dpotrf on x5650", 234), found
    assert first["why"] == "extrapolated beyond measured sizes: calibrate tiles of 1920", found
    assert first["half"] < found["measured_half"] < found["half"] / 3, found
    assert first["share"] > 0.8 and first["error"] < 0.1, found
    refused(duet("explain", str(folder / "trace.json"), "--interval", "runs"), "is neither run")
    # near that of the workload, whose task graph this is
    run = json.loads(duet("simulate", *"cholesky -p idgraf --n 15360 --tile 1920 --extrapolate "
                          "--policy heft --json --interval run".split()).stdout)["runs"][0]
    ratio = run["makespan_s"]["high"] / run["makespan_s"]["low"]
    assert abs(math.sinh(math.log(ratio) / 2) / found["half"] - 1) < 0.1, (found, run)
    found = explain(folder, "cholesky --n 9600 --tile 700 --set-arch --policy heft", "--interval",
                    "median:5")["interval"]
    assert (found["tied"], found["measured_half"]) == (2, None) and "do not tell" in \
        found["sentence"], found
    found = explain(folder, "lu --n 9600 --policy random", "--interval", "run")["interval"]
    assert found["tied"] == 0 and "No drawn figure stands out" in found["sentence"], found
    shown = duet("explain", str(folder / "trace.json"), "--interval", "run", "--quiet").stdout
    assert found["sentence"] in " ".join(shown.split()) and "what if certain" in shown, shown
    found = explain(folder, "cholesky --n 9600 --policy heft --nodes 2 --network "
                            "switch:100Gbps,10ms", "--interval", "run")["interval"]
    assert found["held"][0]["name"] == "the network's latency" and found["tied"] == 1, found


def perfect(found):
    return next(change["makespan_s"] for change in found["what_if"]["changes"] if change["bound"])


def test_bound(folder):
    run = "gemm --n 7680 --tile 960 --cpus 1 --gpus 2 --policy dmdas --link pcie=0.02x"
    bounds = []
    for memory in ("3GiB", "30MiB"):
        found = explain(folder, f"{run} --gpu-memory {memory}")
        assert all(change["makespan_s"] >= perfect(found) * (1 - 1e-9)
                   for change in found["what_if"]["changes"] if not change["buys"]), found
        bounds.append(perfect(found))
    assert bounds[0] < bounds[1], bounds
    # dgetrf has times on GPUs, but no task of it may run there, which the run's own bounds know
    trace = str(folder / "trace.json")
    assert duet("simulate", "lu", "--platform", "mirage", "--n", "5760", "--tile", "960",
                "--policy", "heft", "--quiet", "--trace", trace).returncode == 0
    found = json.loads(duet("explain", trace, "--json", "--quiet").stdout)
    assert 0.9 * found["makespan_s"] < perfect(found) < found["makespan_s"], found


def test_outlier(folder):
    graph = folder / "graph.json"
    for long_s, cause in ((0.5, "kernel"), (0.11, "work")):
        tasks = [{"kernel": 0, "accesses": [], "seconds": [long_s if i == 40 else 0.01]}
                 for i in range(100)]
        graph.write_text(json.dumps({"format": "duet-graph", "schema": 1, "name": "steps",
                                     "architectures": ["cpu"], "kernels": ["step"], "data": [],
                                     "tasks": tasks}), encoding="utf-8")
        found = explain(folder, f"{graph} --cpus 1", "--no-what-if", platform="cores")
        assert found["cause"] == cause and "step took" in found["sentence"], found
        assert "times its median in task 41 on " in found["sentence"], found


def test_lost(folder):
    found = explain(folder, "cholesky --n 512 --tile 64 --cpus 1 --gpus 2 --policy heft --reps 1 "
                            "--warmup 0 --lose gpu1@1", platform=None)
    lost = {worker["name"]: worker["seconds"]["lost"] for worker in found["workers"]}
    assert lost["gpu1"] > 0 == lost["gpu0"] == lost["cpu0"], lost
    assert "gpu1 was lost at" in duet("explain", str(folder / "trace.json"), "--no-what-if").stdout


def test_real(folder):
    # on emulated GPUs, whose machine nobody has described
    found = explain(folder, "cholesky --n 512 --tile 128 --cpus 1 --gpus 1 --policy heft --reps 1",
                    "--platform", "idgraf", platform=None)
    assert found["world"] == "emulated" and found["what_if"]["reference_s"] > 0, found
    assert all(change["makespan_s"] for change in found["what_if"]["changes"]), found["what_if"]


def test_nodes(folder):
    run = ("cholesky --n 9600 --policy heft --gpus 2 --gpu-memory 1GiB --network switch:2Gbps,1us "
           "--nodes ")
    found = explain(folder, run + "2x1")
    makespans = {change["what"]: change["makespan_s"] for change in found["what_if"]["changes"]}
    assert found["cause"] == "message" and all(makespans.values()), found
    assert best(found, True) == "a network of twice the bandwidth", found["what_if"]
    # twice as many nodes are a square, and are simulated as such a run is
    there = duet("simulate", *run.split(), "2x2", "--platform", "idgraf", "--json")
    runs = json.loads(there.stdout)["runs"]
    assert makespans["twice as many nodes"] == runs[0]["makespan_s"]["median"], (makespans, runs)
    # a graph from a file says of no data whose it is
    graph, trace = str(folder / "graph.json"), str(folder / "trace.json")
    assert duet("export", "cholesky", "--n", "3840", "-p", "idgraf", "--out",
                graph).returncode == 0
    assert duet("simulate", graph, "--platform", "idgraf", "--nodes", "2", "--network",
                "switch:2Gbps,1us", "--quiet", "--trace", trace).returncode == 0
    told = duet("explain", trace, status=0)
    assert "which node has which data" in told.stderr, told
    told = duet("explain", trace, "--network", "switch:2Gbps,1us", "--no-what-if", status=2)
    assert "exclude each other" in told.stderr, told
    # what a trace says takes no longer than the run that it shows, and runs no code
    result = duet("simulate", *run.split(), "2x1", "--platform", "idgraf", "--quiet", "--trace",
                  trace)
    written = pathlib.Path(trace).read_text(encoding="utf-8")
    for old, new, says in (('"n":9600', '"n":960000', "of 2 nodes and "),
                           ("nodes=2x1;", "nodes=64x64;", "names a run of 4096 nodes"),
                           ("switch:2Gbps,1us", "fat-tree:2Gbps,1us,16x4096", "--network takes it"),
                           ("switch:2Gbps,1us", "file:./evil.so", "./evil.so: cannot open")):
        pathlib.Path(trace).write_text(written.replace(old, new), encoding="utf-8")
        told = duet("explain", trace)
        assert result.returncode == told.returncode == 0 and old in written, (old, result)
        assert says in told.stderr and "critical path" in told.stdout, told


def test_text(folder):
    explain(folder, "cholesky --n 9600 --tile 960 --cpus 2 --gpus 2 --policy heft", "--no-what-if")
    # a machine that nobody has described: all but the simulation
    text = (folder / "trace.json").read_text(encoding="utf-8")
    text = text.replace('"platform":"idgraf"', '"platform":"elsewhere"')
    (folder / "trace.json").write_text(text, encoding="utf-8")
    shown = duet("explain", str(folder / "trace.json"), status=0)
    assert "critical path" in shown.stdout, shown
    assert shown.stderr.startswith("duet: no change is simulated: no platform is named elsewhere")
    assert "duet calibrate" in shown.stderr and "what if" not in shown.stdout
    page = folder / "page.html"
    shown = duet("explain", str(folder / "trace.json"), "--platform", "idgraf", "--jobs", "1",
                 "--quiet", "--html", page, status=0)
    assert not shown.stderr, shown
    for words in ("critical path", "Most would help:", "% of the time", "what if", "at best"):
        assert words in shown.stdout, (words, shown.stdout)
    assert max(map(len, shown.stdout.splitlines())) <= 110, shown.stdout
    assert page.read_text(encoding="utf-8").count('"cause": "') == 1


def test_guess(folder):
    """Times that nobody knows are named, and nothing is advised by them."""
    graph, trace = str(folder / "graph.json"), str(folder / "trace.json")
    known = {"kernel": 0, "work": 1e9, "seconds": [1, .01]}
    tasks = [{**known, "accesses": [[0, "rw"]], "where": "cpu"}, {**known, "accesses": [[1, "rw"]]},
             *[{"kernel": 1, "seconds": [2, .02]}] * 12]
    pathlib.Path(graph).write_text(json.dumps({
        "format": "duet-graph", "schema": 1, "architectures": ["x5650", "c2050"],
        "kernels": ["k", "g"], "data": [{"bytes": 8000000}, {"bytes": 4000000}], "tasks": tasks}),
        encoding="utf-8")
    ran = duet("simulate", graph, "--platform", "idgraf", "--policy", "heft", "--trace", trace,
               status=0)
    assert "estimated" not in ran.stdout, ran
    # the same kernel with the same flops is nearer than what a GPU took
    shown = duet("simulate", trace, "--platform", "idgraf", "--cpus", "1", "--gpus", "0", "--json",
                 status=0)
    run = json.loads(shown.stdout)["runs"][0]
    assert math.isclose(run["makespan_s"]["median"], 2 + 12 * .02, rel_tol=1e-3), run
    assert run["estimated"] == "tasks (share of the time: x5650 11 % as for c2050)", run
    found = json.loads(duet("explain", trace, "--json").stdout)["what_if"]
    assert found["guess"] == "g on x5650", found
    assert all(found["guess"] in change["error"] for change in found["changes"]), found
    shown = duet("explain", trace).stdout
    assert "Nothing is advised: " in shown and "Most would" not in shown, shown


def test_refused(folder):
    broken = folder / "broken.json"
    broken.write_text("{", encoding="utf-8")
    for arguments, says in [
            ([], "takes one trace"),
            ([str(broken), str(broken)], "takes one trace"),
            ([str(broken)], "broken.json:"),
            (["/nope/x.json"], "/nope/x.json: cannot open"),
            ([str(broken), "--platform", "idgraf", "--no-what-if"], "exclude each other"),
            ([str(broken), "--interval", "run", "--no-what-if"], "exclude each other"),
            ([str(broken), "--nope"], "--nope"),
            ([str(broken), "--html", str(broken)], "one file"),
            ([str(broken), "--html", "/nope/x.html"], "/nope/x.html"),
            ([str(broken), "--html", ""], "--html"),
    ]:
        refused(duet("explain", *arguments), says)


def test_platform_of_a_file(folder):
    """A trace names the file of its platform from anywhere, and another content or none is said."""
    node, elsewhere = folder / "node.json", folder / "elsewhere"
    text = (ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8")
    elsewhere.mkdir()
    for run, environment in (
            ([DUET, *"simulate cholesky --platform ./node.json --n 1920 --trace run.json".split()],
             {}),
            ([BUILD / "examples" / "tiled_cholesky", "512", "128"],
             {"DUET_SIMULATE": "./node.json", "DUET_TRACE": "run.json"})):
        node.write_text(text, encoding="utf-8")
        subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **environment})
        node.write_text(text + " ", encoding="utf-8")
        changed = duet("explain", "../run.json", "--quiet", cwd=elsewhere)
        node.unlink()
        os.mkfifo(node)
        gone = duet("explain", "../run.json", "--quiet", cwd=elsewhere)
        node.unlink()
        for shown, says in (changed, "has changed since"), (gone, "is no file any more"):
            assert shown.stderr.count("\n") == 1 and f"{node}, the platform of the run, {says}: " \
                "--platform FILE " in shown.stderr and "what if" not in shown.stdout, shown
    node.write_text(text, encoding="utf-8")
    shown = duet("explain", "../run.json", "--quiet", cwd=elsewhere)
    assert "what if" in shown.stdout and not shown.stderr, shown


def test_policy_of_a_file(folder):
    """A trace is data: the code that it names runs only for those who ask for it."""
    policy = BUILD / "examples" / "policies" / "random_worker.so"
    trace = str(folder / "trace.json")
    duet("simulate", "cholesky", "--platform", "idgraf", "--n", "3840", "--policy", str(policy),
         "--trace", trace, status=0)
    found = duet("explain", trace, "--quiet", status=0)
    assert f"--policy {policy} would load" in found.stderr, found
    assert "what if" not in found.stdout and "critical path" in found.stdout, found
    found = duet("explain", trace, "--quiet", "--policy", str(policy), status=0)
    assert "what if" in found.stdout and not found.stderr, found


CAUSES = (test_slow_link, test_missing_kernel, test_tiny_memory, test_bad_priorities,
          test_wrong_tile, test_settings, test_interval, test_bound, test_outlier, test_guess)
FILES = (test_lost, test_real, test_nodes, test_text, test_refused, test_policy_of_a_file,
         test_platform_of_a_file)
# sanitizers look at what is read; causes are found by the code of validate.explain
for test in FILES if "ASAN_OPTIONS" in os.environ else CAUSES + FILES:
    with tempfile.TemporaryDirectory() as scratch:
        test(pathlib.Path(scratch))
