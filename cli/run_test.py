# SPDX-License-Identifier: Apache-2.0
"""`duet run`: bad input, formats, verification, emulation, lost GPUs, failing kernels, signals."""

import contextlib
import csv
import functools
import io
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

import testing
from testing import (DUET, at_task, attends, compile_policy, interrupted, refuse_all, refused,
                     run_tests, told, touch, until)

CC = os.environ.get("DUET_CC") or "cc"
SMALL = "cholesky --n 512 --tile 128 --cpus 1 --gpus 0 --reps 2".split()
TASKS = 20  # of it
FREE = "cholesky --n 512 --tile 128 --emulate free --reps 2 --verify".split()
PACED = "cholesky --n 3840 --tile 960 --emulate idgraf --scale 0.01 --reps 2".split()

# (arguments, after those of SMALL where they begin with a +; what the message says)
BAD = [
    ("", "which workload? duet run WORKLOAD"),
    ("layered", "duet simulate layered"),
    ("+ --platform idgraf", "--platform"),
    ("+ --jobs 2", "--jobs"),
    ("+ --warmup 1.5", "--warmup takes a whole number from 0"),
    ("+ --gpus 1000", "1000"),
    ("+ --watchdog 0", "--watchdog takes seconds"),
    ("+ --devices x", "name cuda or opencl (--devices)"),
    ("+ --watchdog 30s", "--watchdog takes seconds without a unit, such as 30"),
    ("+ --emulate ''", "--emulate takes 'free'"),
    ("+ --emulate free --scale 0.1", "--scale is for an emulated platform"),
    ("+ --emulate idgraf --scale 0", "--scale takes a number"),
    ("+ --emulate idgraf --verify", "computes nothing"),
    ("+ --verify=twice", "--verify takes nothing, 'last' or 'exact', not 'twice'"),
    ("+ --emulate idgraf", "--extrapolate"),
    ("+ --link pcie=1GB/s", "--link is for an emulated platform"),
    ("+ --emulate idgraf --gpu-streams 2", "--gpu-streams is for GPUs that compute"),
    ("+ --emulate idgraf --pin none", "--pin is for GPUs that compute"),
    ("+ --gpu-streams 0", "--gpu-streams takes a whole number from 1 to 64"),
    ("+ --gpus 0 --gpu-window 4 --gpu-window-short 3",
     "--gpu-window-short 3 is less than --gpu-window 4"),
    ("+ --emulate free --cpus 0 --gpus 1",
     "kernel dpotrf is for CPUs only, and no CPU computes: add one (--cpus), or let GPUs run it "
     "(--param potrf=any)"),
    ("lu --n 512 --tile 128 --emulate free --cpus 0", "(--param getrf=any)"),
    ("lu-pivot --n 512 --tile 128 --emulate free --cpus 0",
     "kernel dgetrf is for CPUs only, and no CPU computes: add one (--cpus)"),
    ("+ --lose gpu0@1", "--lose is for emulated GPUs"),
    ("+ --emulate free --gpus 1 --lose gpu1@1", "gpu1"),
    ("+ --emulate free --gpus 1 --lose gpu0", "gpu1@100"),
    ("+ --emulate free --gpus 1 --gpu-memory 200kB", "device memory"),
    ("+ --emulate ./x.json --trace x.json", "--emulate and --trace are one file"),
]

# A kernel that does something else, and finds that no matrix is positive definite.
KERNEL = """
#include <stdio.h>
#include <unistd.h>
int LAPACKE_dpotrf_work(int order, char half, int n, double *a, int ld) { BODY return 1; }
int LAPACKE_dpotrf(int order, char half, int n, double *a, int ld) { BODY return 1; }
void dpotrf_(char *half, int *n, double *a, int *ld, int *info) { BODY *info = 1; }
"""


def with_kernel(library, body=""):
    """The environment in which dpotrf is this."""
    subprocess.run([CC, "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", library], check=True,
                   input=KERNEL.replace("BODY", body), text=True)
    order = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {**os.environ, "LD_PRELOAD": str(library), "ASAN_OPTIONS": order}


duet = functools.partial(testing.duet, "run")
good = functools.partial(testing.good, "run")


def good_json(*arguments, **options):
    report = json.loads(good(*arguments, "--json", **options))
    assert list(report) == ["schema", "command", "interrupted", "runs"], report
    assert report["schema"] == 1 and report["command"].startswith("duet run ")
    assert report["interrupted"] is False
    return report["runs"]


def failed(fragment, *arguments, **options):
    result = duet(*arguments, **options)
    # a sanitizer says in a line of its own that there is no memory
    said = [line for line in told(result.stderr) if not line.startswith("==")]
    assert result.returncode == 1 and not result.stdout, (arguments, result)
    assert len(said) == 1 and fragment in said[0], (arguments, result)


def test_bad_input():
    with tempfile.TemporaryDirectory() as folder:
        refuse_all("run", BAD, SMALL, cwd=folder)
        assert not os.listdir(folder)


def test_table():
    text = good(*SMALL, "--policy", "ws,heft", "--verify", "exact", "--warmup", "2")
    assert re.match(r"run on \S+: 1 CPU \(\S+\)\n", text), text
    assert ("cholesky, n 512, tile 128, double precision, 20 tasks, 2 runs a policy after 2 "
            "warm-ups, ") in text
    for name in "ws", "heft":
        assert re.search(rf"^{name} +\d", text, re.M), (name, text)
    assert re.search(r"^lower bounds of ws: critical path 0\.\d+ s, area 0\.\d+ s", text, re.M)
    assert "by the mean times measured in these runs\n" in text
    assert re.search(r"^verification: .* to be below 30: passed in all 4 runs\n", text, re.M), text
    assert "emulated" not in text


def test_json():
    runs = good_json(*SMALL, "--policy", "ws,heft", "--verify", "--reps", "3", "--seed", "7")
    assert [run["policy"] for run in runs] == ["ws", "heft"]
    for run in runs:
        assert run["world"] == "real" and run["emulation"] is None and run["lose"] is None
        assert (run["cpus"], run["gpus"], run["tasks"]) == (1, 0, TASKS)
        assert run["cores"] >= 1 and run["warmups"] == 1 and run["reps_wanted"] == 3
        assert len(run["makespan_s"]["values"]) == 3 and min(run["makespan_s"]["values"]) > 0
        assert run["gflops"] > 0 and run["wall_s"] >= run["makespan_s"]["median"] * 0.5
        assert run["bounds_from"] == "measured" and run["bounds_s"]["critical_path"] > 0
        check = run["verification"]
        assert check["passed"] is True and len(check["residuals"]) == 3, check
        assert all(0 < residual < check["threshold"] == 16 for residual in check["residuals"])
    assert len({run["platform"] for run in runs}) == 1
    # the same seed makes the same data, and other seeds others
    residuals = runs[0]["verification"]["residuals"]
    assert residuals == runs[1]["verification"]["residuals"], runs
    other = good_json(*SMALL, "--verify", "--reps", "3", "--seed", "8")[0]["verification"]
    assert not set(residuals) & set(other["residuals"]), (residuals, other)


def test_held():
    """Tasks that begin together, in an order of the whole graph, compute the same."""
    text = good(*SMALL, "--policy", "ws,static,auto", "--verify", "--hold",
                "--priorities", "bottom-level")
    assert ", held, priorities bottom-level, " in text, text
    assert "passed in all 6 runs" in text, text
    # auto does what others do, and says which of them
    assert re.search(r"^auto took \w+", text, re.M), text


def test_judged():
    """--verify last judges one run of each policy, --verify exact by another bound."""
    for words, bound, count in (["--verify", "last"], 16, 1), (["--verify=exact"], 30, 2):
        run = good_json(*words, *SMALL)[0]
        assert len(run["makespan_s"]["values"]) == 2, run
        assert run["verification"]["threshold"] == bound, run
        assert len(run["verification"]["residuals"]) == count, run


def test_csv():
    rows = list(csv.DictReader(io.StringIO(good(*SMALL, "--policy", "ws,eager", "--csv",
                                                "--verify"))))
    assert [(row["policy"], row["rep"]) for row in rows] == [
        (policy, str(rep)) for policy in ("ws", "eager") for rep in range(2)]
    for row in rows:
        assert (row["world"], row["emulation"], row["scale"], row["lose"]) == ("real", "", "", "")
        assert (row["warmups"], row["interrupted"], row["threshold"]) == ("1", "false", "16")
        assert 0 < float(row["residual"]) < 16 and float(row["wall_s"]) > 0


def test_first_run():
    """Without a warm-up nothing is known of the first run's kernels when they are submitted."""
    run = good_json(*SMALL, "--warmup", "0", "--reps", "1")[0]
    assert run["bounds_s"]["critical_path"] == 0 and run["bounds_s"]["area"] > 0
    assert run["verification"] is None


def test_all_workloads():
    listed = testing.duet("list", "workloads", status=0)
    names = re.findall(r"^([a-z]\S+)", listed.stdout, re.M)
    assert {"cholesky", "lu", "gemm"} <= set(names), names
    names.remove("layered")
    for number, name in enumerate(names):
        n, tile = ("24", "8") if name == "fibonacci" else ("192", "64")
        run = good_json(name, "--n", n, "--tile", tile, "--precision", "sd"[number % 2],
                        "--verify", "--cpus", "1", "--gpus", "1", "--emulate", "free",
                        "--policy", "heft", "--reps", "1")[0]
        assert run["verification"]["passed"], run


def test_free_emulation():
    """Memory for six tiles of ten: all work on the GPU, with eviction, and right results."""
    with tempfile.TemporaryDirectory() as folder:
        run = good_json(*FREE, "--cpus", "0", "--gpus", "1", "--param", "potrf=any",
                        "--gpu-memory", str(6 * 128 * 128 * 8), "--trace", "t.json", cwd=folder)[0]
        events = json.loads((pathlib.Path(folder) / "t.json").read_text())["traceEvents"]
    assert run["world"] == "emulated" and run["emulation"] == {"kind": "free"}
    assert (run["cpus"], run["gpus"]) == (0, 1) and run["verification"]["passed"]
    assert run["gflops"] > 0 and run["bytes"]["device_to_host"] > 0
    assert any(event.get("args", {}).get("write_back") for event in events)
    text = good(*FREE, "--cpus", "1", "--gpus", "2", "--pin", "none")
    assert re.match(r"run on \S+ with emulated GPUs: 1 CPU \(\S+\) \+ 2 GPUs \(\S+\)\n", text), text


def test_gpu_options():
    """What only changes how GPUs are used changes no result."""
    run = good_json(*FREE, "--cpus", "0", "--gpus", "2", "--param", "potrf=any", "--gpu-memory",
                    "50%", "--gpu-window", "3", "--gpu-window-short", "20", "--gpu-streams", "2",
                    "--pin", "1MiB")[0]
    assert run["verification"]["passed"]


def test_paced_emulation():
    """Nothing is faster than its time; nothing is computed; everybody is told."""
    run = good_json(*PACED, "--cpus", "4", "--gpus", "8", "--policy", "heft", "--gpu-memory",
                    "100%", "--gpu-window-short", "2")[0]
    assert run["world"] == "emulated" and run["platform"] == "idgraf"
    assert run["emulation"] == {"kind": "paced", "scale": 0.01} and run["gflops"] is None
    assert (run["cpus"], run["gpus"], run["tasks"]) == (4, 8, 20)
    assert run["bounds_from"] == "platform" and run["verification"] is None
    for value in run["makespan_s"]["values"]:
        assert value > run["bounds_s"]["critical_path"] > 0
    text = good(*PACED)
    assert text.startswith("run on an emulated idgraf (times x 0.01, nothing computed): 4 CPU")
    assert "at scale 1" in text and "by the mean times of the platform\n" in text, text
    # defaults are those of simulations; a workload without kernels can be paced, too
    row = next(csv.DictReader(io.StringIO(good("layered", "--emulate", "idgraf", "--scale", "0.001",
                                               "--n", "200", "--reps", "1", "--csv"))))
    assert (row["world"], row["emulation"], row["scale"], row["gflops"], row["tasks"]) == (
        "emulated", "paced", "0.001", "", "200"), row


def test_paced_bounds():
    """The bounds of a paced run are those of the simulation, times the scale."""
    simulated = testing.duet("simulate", "cholesky", "--platform", "idgraf", "--n", "3840",
                             "--tile", "960", "--json")
    expected = json.loads(simulated.stdout)["runs"][0]["bounds_s"]
    measured = good_json(*PACED, "--reps", "1", "--warmup", "0")[0]["bounds_s"]
    for name in "critical_path", "area":
        assert abs(measured[name] / (expected[name] * 0.01) - 1) < 1e-6, (name, measured, expected)


def page_data(page):
    """The report that a page is made from."""
    return json.loads(re.search(r'id="report">(.*?)</script>', page, re.S)[1])


def test_files():
    """Dates begin with the first submission of the first measured run."""
    with tempfile.TemporaryDirectory() as folder:
        runs = good_json(*SMALL, "--policy", "ws,heft", "--warmup", "3", "--trace", "t.json",
                         "--gantt", "g.svg", "--html", "p.html", cwd=folder)
        assert sorted(os.listdir(folder)) == ["g-heft.svg", "g-ws.svg", "p.html", "t-heft.json",
                                              "t-ws.json"]
        trace = json.loads((pathlib.Path(folder) / "t-ws.json").read_text())["traceEvents"]
        page = (pathlib.Path(folder) / "p.html").read_text()
    kernels = [event for event in trace if event.get("cat") == "kernel"]
    assert len(kernels) == TASKS, len(kernels)
    assert min(event["args"]["submitted_us"] for event in kernels) == 0
    last = max(event["ts"] + event["dur"] for event in kernels)
    assert abs(last / 1e6 - runs[0]["makespan_s"]["values"][0]) < 1e-6, (last, runs[0])
    assert page_data(page)["runs"] == runs


def test_lost_gpu():
    """The others do its work; the only one leaves work that nobody can do."""
    run = good_json(*FREE, "--cpus", "1", "--gpus", "2", "--lose", "gpu1@1")[0]
    assert run["lose"] == "gpu1@1" and run["verification"]["passed"]
    failed("the run of ws failed: ", *FREE, "--cpus", "0", "--gpus", "1", "--param", "potrf=any",
           "--lose", "gpu0@5", "--no-bind")


def test_failing_kernel():
    """One line that names the task; no report, no file."""
    with tempfile.TemporaryDirectory() as folder:
        environment = with_kernel(pathlib.Path(folder) / "breaker.so")
        failed("the run of ws failed: task 1 (dpotrf) failed on cpu0", *SMALL, "--html", "p.html",
               "--policy", "ws,heft", cwd=folder, env=environment)
        assert os.listdir(folder) == ["breaker.so"]


def test_too_large():
    """Data that no memory can hold: that is said, and no more."""
    failed("duet: no memory for a matrix of 16000000 x 16000000", "cholesky", "--n", "16000000",
           "--tile", "8000")


def test_stuck():
    """A policy that loses tasks: the watchdog ends the run."""
    with tempfile.TemporaryDirectory() as folder:
        loser = pathlib.Path(folder) / "loser.so"
        compile_policy(loser, keeps="0")
        # the others of a list are reported
        result = duet(*SMALL, "--policy", "ws,./loser.so,heft", "--watchdog", "0.3", "--json",
                      cwd=folder, status=1)
        assert ("duet: the run of ./loser.so failed: 20 tasks cannot go on: no worker has"
                in result.stderr), result
        assert [run["policy"] for run in json.loads(result.stdout)["runs"]] == ["ws", "heft"]
        # also where the first one does not even begin
        compile_policy(loser, keeps="0", init="DUET_EINVAL")
        result = duet(*SMALL, "--policy", "./loser.so,heft", "--json", cwd=folder, status=1)
        assert result.stderr.startswith("duet: the run of ./loser.so failed: policy mine: its init "
                                        "returned -2 (invalid argument)"), result
        assert [run["policy"] for run in json.loads(result.stdout)["runs"]] == ["heft"]


def test_policy_that_returns_what_is_taken():
    """It is named with the task, in both worlds; a simulation in which it only spins ends."""
    with tempfile.TemporaryDirectory() as folder:
        for popped, says, worlds in (
                ("static struct duet_task *kept; task = kept ? kept : (kept = task);",
                 "policy mine returns task 1 (dpotrf) to ", 2),
                ("task = (void *)8;", "policy mine returns what is no task to ", 1),
                ("if (task) duet_push_tail(view, duet_view_shared(view), task); task = 0;",
                 "workers were asked 1000000 times at one date", 1)):
            compile_policy(pathlib.Path(folder) / "bad.so", popped=popped)
            both = ["simulate", "--platform", "idgraf"], ["run", "--watchdog", "0.3"]
            for world in both[:worlds]:
                command = [DUET, world[0], "cholesky", "--n", "2880", "--tile", "960", "--cpus",
                           "1", "--gpus", "0", "--policy", "./bad.so", *world[1:]]
                result = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                        timeout=300, check=False)
                assert result.returncode == 1 and says in result.stderr, result


def test_later_failure():
    """Runs that are finished are reported where a later one of the same policy fails."""
    with tempfile.TemporaryDirectory() as folder:
        # the first of the 20 tasks of its fifth run is lost
        compile_policy(pathlib.Path(folder) / "later.so",
                       keeps="__atomic_add_fetch(&pushed, 1, __ATOMIC_RELAXED) != 4 * 20 + 1")
        result = duet(*SMALL, "--reps", "9", "--warmup", "1", "--watchdog", "0.3", "--policy",
                      "ws,./later.so", "--trace", "t.json", cwd=folder, status=1)
        assert re.search(r"duet: the run of ./later.so failed: [0-9]+ tasks? cannot go on",
                         told(result.stderr)[-1]), result
        assert ", 3 to 9 runs a policy after 1 warm-up" in result.stdout, result
        assert (pathlib.Path(folder) / "t-later.json").exists()


def test_links():
    """Links of an emulated platform that keep their figures are named, as in a simulation."""
    result = duet(*PACED, "--cpus", "1", "--gpus", "1", "--link", "pcie=2x", status=0)
    (line,) = told(result.stderr)
    assert re.fullmatch(r"duet: --link leaves .* as they are .*", line), result


def test_progress():
    """Tasks that others submit are not counted: the bar is never ahead of the runs, not even when
    the first one has taken as many tasks as would be all of them."""
    terminal, standard_error = os.openpty()
    with tempfile.TemporaryDirectory() as folder:
        compile_policy(f"{folder}/waits.so",
                       popped=at_task(100, 'while (access("drawn", F_OK)) usleep(1000);'))
        process = subprocess.Popen(
            [DUET, "run", *"cholesky --n 512 --tile 256 --cpus 1 --gpus 0 --warmup 0 --reps 12"
             " --param block=16 --policy ./waits.so".split()], cwd=folder,
            stdout=subprocess.DEVNULL, stderr=standard_error)
        os.close(standard_error)
        drawn, bars = "", []
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while True:
                drawn += os.read(terminal, 4096).decode()
                bars = re.findall(r"(\d+) %  run (\d+)/12", drawn)
                if bars:
                    pathlib.Path(folder, "drawn").touch()
        assert process.wait() == 0 and bars, drawn
    os.close(terminal)
    for percent, run in bars:
        assert int(percent) <= 100 * int(run) / 12 + 1, bars


def test_interruption():
    """What is finished is reported as such, in every format, with whole files."""
    with tempfile.TemporaryDirectory() as name:
        begun = pathlib.Path(name, "begun")
        policy = pathlib.Path(name, "mine.so")
        # 4 tasks a run: the warm-up, the first measured run, and one of the second
        compile_policy(policy, popped=at_task(2 * 4 + 1, touch(begun)))
        check_interruption(policy, begun)


def check_interruption(policy, begun):
    """Endless runs with a policy that leaves a file when the second measured run has begun."""
    endless = [*PACED, "--n", "1920", "--cpus", "2", "--gpus", "1", "--reps", "100000", "--policy",
               f"{policy},heft"]

    def interrupt(arguments, folder, number=signal.SIGINT):
        begun.unlink(missing_ok=True)
        return interrupted("run", *arguments, cwd=folder, number=number,
                           when=lambda _: begun.exists())

    with tempfile.TemporaryDirectory() as folder:
        output, messages = interrupt(
            [*endless, "--json", "--html", "p.html", "--trace", "t.json"], folder)
        report = json.loads(output)
        assert re.search(r"^duet: interrupted: \d+ of 200000 measured runs are finished$", messages,
                         re.M), messages
        assert report["interrupted"] is True and len(report["runs"]) == 1, report
        assert report["runs"][0]["reps_wanted"] == 100000
        assert 1 <= len(report["runs"][0]["makespan_s"]["values"]) < 100000
        assert sorted(os.listdir(folder)) == ["p.html", "t-mine.json"]
        json.loads((pathlib.Path(folder) / "t-mine.json").read_text())
        page = (pathlib.Path(folder) / "p.html").read_text()
        assert page_data(page)["interrupted"] and page.rstrip().endswith("</html>")
    with tempfile.TemporaryDirectory() as folder:
        output, _ = interrupt(endless, folder, signal.SIGTERM)
        assert re.match(rf"interrupted: of 100000 runs a policy, {policy} has \d+\n", output)
        output, _ = interrupt([*endless, "--csv"], folder)
        rows = list(csv.DictReader(io.StringIO(output)))
        assert rows
        assert {row["interrupted"] for row in rows} == {"true"}
        assert os.listdir(folder) == []


def test_impatience():
    """A kernel that lasts is waited for, but not for long, unless a second signal comes; no file is
    left."""
    with tempfile.TemporaryDirectory() as name:
        folder, begun = pathlib.Path(name), pathlib.Path(name, "begun")
        environment = with_kernel(folder / "endless.so", touch(begun) + "for (;;) pause();")
        for signals in 1, 2:
            begun.unlink(missing_ok=True)
            process = subprocess.Popen([DUET, "run", *SMALL, "--html", "p.html"], cwd=folder,
                                       env=environment, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            until(begun.exists)
            until(lambda: process.send_signal(signal.SIGINT) or signals == 1
                  or process.poll() is not None)
            output, messages = process.communicate()
            assert process.returncode == -signal.SIGINT and output == "", (process, output)
            assert signals == 2 or "nothing has begun or ended for 3 s" in messages, messages
            assert sorted(os.listdir(folder)) == ["begun", "endless.so"]


def test_address_space():
    """OpenBLAS is not called where it would try for ever to map its memory."""
    if "ASAN_OPTIONS" in os.environ:  # sanitizers map far more
        return
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))
    result = duet(*SMALL, "--cpus", "16", preexec_fn=limit)
    refused(result, "no address space for OpenBLAS, which takes 128 MiB a worker", 1)
    good("jacobi2d", *SMALL[1:], preexec_fn=limit)  # which needs none


def test_policy_that_does_not_return():
    """The first signal ends the run, also where it comes twice at once, and says on which worker
    the policy is, or that the runtime does not open."""
    spin = "for (;;) pause();"
    with tempfile.TemporaryDirectory() as folder:
        spinning = pathlib.Path(folder, "spinning")
        for workers, odd, says in (
                (["0", "--gpus", "1"], {"popped": at_task(1, touch(spinning) + spin)},
                 "the scheduling policy does not return on gpu0"),
                (["1"], {"popped": touch(spinning) + spin}, "the runtime has not opened for 3 s"),
                (["1"], {"init": f"({{ {touch(spinning)} {spin} 0; }})"},
                 "the runtime has not opened for 3 s")):
            spinning.unlink(missing_ok=True)
            compile_policy(f"{folder}/spinner.so", **odd)
            process = subprocess.Popen(
                [DUET, "run", *FREE[:-1], "--param", "potrf=any", "--policy", "./spinner.so",
                 "--cpus", *workers], cwd=folder, text=True, stderr=subprocess.PIPE)
            until(spinning.exists)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            _, messages = process.communicate()
            assert process.returncode == -signal.SIGTERM, process.returncode
            assert says in messages, messages


def test_policy_that_ends_the_process():
    """A crash and exit() are said in a line that names the policy."""
    with tempfile.TemporaryDirectory() as folder:
        for popped, says, status in (
                ("raise(SIGSEGV);", "killed by signal 11 (Segmentation fault)", -signal.SIGSEGV),
                ("abort();", "killed by signal 6 (Aborted)", -signal.SIGABRT),
                ("exit(0);", "something in it called exit(0)", 1)):
            compile_policy(f"{folder}/mine.so", popped=at_task(1, popped))
            if status < -1 and "ASAN_OPTIONS" in os.environ:  # which attend to it themselves
                continue
            refused(duet(*SMALL, "--quiet", "--policy", "ws,./mine.so", cwd=folder),
                    f"the run of ./mine.so failed: {says}", status)


def test_ignored_signal():
    """As under nohup: what is ignored stays so, and another signal still ends the run."""
    process = subprocess.Popen(["sh", "-c", 'trap "" INT; exec "$@"', "sh", DUET, "run", *PACED,
                                "--reps", "100000"], stdout=subprocess.DEVNULL)
    until(lambda: attends(process, signal.SIGTERM) and attends(process, signal.SIGINT, "SigIgn"))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM, process.returncode


probe = duet(*SMALL)
if "without BLAS" in probe.stderr:
    print("there are no kernels in this duet")
    sys.exit(77)
run_tests(globals())
