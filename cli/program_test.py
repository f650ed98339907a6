# SPDX-License-Identifier: Apache-2.0
"""A program that uses libduet, behind --, is what a workload is to the command."""

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import testing
from testing import DUET, ROOT, children_of, interrupted, is_alive, refused, until

EXAMPLES = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve() / "examples"
QR = [EXAMPLES / "tiled_qr", "256", "64"]
SIMULATE = ["simulate", "--platform", "idgraf"]

# (arguments before --, the program or None, what the message says, exit status)
BAD = [
    (SIMULATE, [], "which program?", 2),
    (SIMULATE, ["./nonesuch"], "cannot run ./nonesuch: there is no such program", 2),
    (SIMULATE, ["./text"], "cannot run ./text: it is no program", 2),
    (SIMULATE, ["text"], "cannot run text: it is no program", 2),
    (SIMULATE, ["here"], "it is not in the search path (PATH): -- ./here is the one here", 2),
    ([*SIMULATE, "--trace", "here"], ["./here"], "the program and --trace are one file", 2),
    ([*SIMULATE, "--html", "text"], ["true", "text"], "of the program and --html are one file", 2),
    ([*SIMULATE, "cholesky"], ["true"], "a workload, cholesky, or a program", 2),
    ([*SIMULATE, "--n", "64"], ["true"], "--n is for workloads", 2),
    (["run", "--verify"], ["true"], "--verify is for workloads", 2),
    (["validate", "--cases", "c.json"], ["true"], "--cases is for workloads", 2),
    (["study", "--platform", "idgraf", "--arg", "b=1,2"], ["true", "b"], "has {b} in it", 2),
    (["study", "--platform", "idgraf"], ["true", "{1,2}x{3,4}"], "has a list without a name", 2),
    (["study", "--platform", "idgraf", "--arg", "2=1,2"], ["true", "{2}", "{3,4}"],
     "has a list without a name", 2),
    (["study", "--platform", "idgraf", "--arg", "b"], ["true", "{b}"], "NAME=LIST, not 'b'", 2),
    (["study", "--platform", "idgraf", "--arg", "b=1", "--arg", "B=1"], ["true", "{b}{B}"],
     "arg b and arg B would be one column, arg_b", 2),
    (["study", "--platform", "idgraf", "--cases", "first.json"], ["true", "{b}"],
     "a case has no value for {b}", 2),
    (["study", "--platform", "idgraf", "--cases", "last.json"], ["true", "{b}"],
     "a case has no value for {b}", 2),
    (["tune", "--platform", "idgraf"], ["true", "{1..0}"], "--arg", 2),
    (["calibrate", "--from"], ["true"], "--from reads traces that are there", 2),
    (["calibrate", "--tile", "64", "--from", "t.json"], None, "--from runs nothing: --tile is", 2),
    (["calibrate", "--from", "t.json", "t.json"], None, "'t.json' is named twice", 2),
    (["calibrate", "t.json"], None, "t.json is no workload: traces are read with --from", 2),
    (SIMULATE, ["true"], "has left no trace: it has to use libduet", 1),
    (SIMULATE, ["sh", "-c", "echo one >&2; echo two >&2; exit 3"], "ended with status 3: two", 1),
    (SIMULATE, ["sh", "-c", f"echo one >&2; echo 'ValueError: {'é' * 250}' >&2; exit 3"],
     f"ended with status 3: ValueError: {'é' * 144}…", 1),
    (SIMULATE, ["sh", "-c", f"printf '%5000d' 0 >&2; exit 3"], "status 3: …  ", 1),
    (SIMULATE, ["sh", "-c", "kill -SEGV $$"], "killed by signal 11", 1),
    (SIMULATE, [QR[0], "100", "64"], "status 2: ", 1),
    (SIMULATE, [*QR, "--duet-cpus=2"], "has not run on the machine that it was told", 1),
    (SIMULATE, ["sh", "-c", f"{QR[0]} 256 64; {QR[0]} 256 64"], "several runtimes", 1),
    ([*SIMULATE, "--policy", "random,fish"], QR, "unknown policy 'fish'", 2),
    (["run"], ["true"], "has left no trace", 1),
    (["run", "--cpus", "1"], ["sh", "-c", "kill -KILL $$"], "killed by signal 9", 1),
    (["calibrate", "--budget", "0.1s", "--no-costs", "--cpus", "1", "--gpus", "0", "--out",
      "bad.json"], ["false"],
     "ended with status 1", 1),
]


def environment(**own):
    inherited = {name: value for name, value in os.environ.items()
                 if not re.match(r"DUET_[A-Z]", name)}
    return {**inherited, **own}


def duet(*arguments):
    """What it prints, of a call that ends well. What programs inherit is not what they are told."""
    inherited = environment(DUET_POLICY="eager", DUET_CPUS="1")
    return testing.duet(*arguments, status=0, env=inherited).stdout


def check_bad():
    pathlib.Path("text").write_text("", encoding="ascii")
    pathlib.Path("here").touch(0o755)
    cases = [{"policy": "ws", "arg": {"b": "1,2"}}, {"policy": "heft"}]
    for name, listed in (("last.json", cases), ("first.json", cases[::-1])):
        pathlib.Path(name).write_text(json.dumps({"schema": 1, "cases": listed}), encoding="utf-8")
    for before, program, says, status in BAD:
        behind = [] if program is None else ["--", *map(str, program)]
        result = testing.duet(*before, *behind, env=environment())
        refused(result, says, status)
    assert not pathlib.Path("bad.json").exists()


def direct(**settings):
    """The makespan of a simulation that the program is told by hand."""
    subprocess.run(QR, check=True, stdout=subprocess.PIPE,
                   env=environment(DUET_SIMULATE="idgraf", DUET_TRACE="direct.json", **settings))
    text = pathlib.Path("direct.json").read_text(encoding="utf-8")
    return json.loads(text)["otherData"]["stats"]["makespan_s"]


def check_figures():
    """A trace of figures says of the run what one with records does, and is no trace to read."""
    said, kernels = [], []
    for figures in "01":
        direct(DUET_FIGURES=figures)
        trace = json.loads(pathlib.Path("direct.json").read_text(encoding="utf-8"))
        said.append(trace["otherData"])
        kernels.append(sum(event.get("cat") == "kernel" for event in trace["traceEvents"]))
    assert said[0] == said[1] and said[0]["stats"]["tasks"] == kernels[0] and not kernels[1]
    refused(testing.duet("explain", "direct.json"), "there is no kernel", 2)


def check_simulate():
    """The same digits as without the command, whatever runs at the same time."""
    options = [*SIMULATE, "--json", "--reps", "2", "--seed", "5", "--noise", "--gpu-memory", "1MB",
               "--link", "pcie=2x", "--policy"]
    text = duet(*options, "ws,heft", "--jobs", "3", "--trace", "t.json", "--html", "t.html", "--",
                *QR)
    for series in json.loads(text)["runs"]:
        assert series["workload"] == "tiled_qr" and series["settings"] == "256 64", series
        assert series["tasks"] == 30 and series["gpus"] == 8, series
        wanted = [direct(DUET_POLICY=series["policy"], DUET_SEED=str(5 + run), DUET_NOISE="1",
                         DUET_GPU_MEMORY="1000000", DUET_LINKS="pcie=2x") for run in range(2)]
        assert series["makespan_s"]["values"] == wanted, (series, wanted)
        assert series["bounds_s"]["area"] > 0 and series["idle_share"] > 0
        assert series["basis"]["measured"] == 0 and series["basis"]["guessed"] > 0, series
        assert abs(sum(series["basis"].values()) - 1) < 1e-9, series
    again = duet(*options, "heft", "--jobs", "1", "--", *QR)
    assert json.loads(again)["runs"] == json.loads(text)["runs"][1:]
    traced = json.loads(pathlib.Path("t-heft.json").read_text(encoding="utf-8"))
    assert sum(event.get("cat") == "kernel" for event in traced["traceEvents"]) == 30
    assert traced["otherData"]["policy"] == "heft" and traced["otherData"]["seed"] == "5"
    assert "tiled_qr" in pathlib.Path("t.html").read_text(encoding="utf-8")
    table = duet(*SIMULATE, "--", *QR)
    assert "tiled_qr, 30 tasks, 256 64\n" in table, table


def check_study():
    """Lists in braces are factors: "--tile {64,128}" and "--tile={64,128}" of "tile", others by
    their place; with --arg they have a name."""
    def study(*options):
        text = duet("study", "--platform", "idgraf", "--extrapolate", "--quiet", "--csv", "--out",
                    "args.db", *options)
        os.unlink("args.db")
        return list(csv.DictReader(io.StringIO(text)))

    rows = study("--", *QR[:2], "{64..128*2}")
    wanted = {row["arg_2"]: row["makespan_s"] for row in rows}
    assert wanted.keys() == {"64", "128"} and len(set(wanted.values())) == 2, rows
    assert study("--", *QR)[0]["makespan_s"] == wanted["64"], rows
    script = f"[ $0 = {{}} ] && exec {QR[0]} 256 ${{2-${{1#*=}}}}"
    for column, options, words in (
            ("arg_t", ["--arg", "t=64,128"], [*QR[:2], "{t}"]),
            ("arg_tile", [], ["sh", "-c", script, "{}", "--tile", "{64,128}"]),
            ("arg_tile", [], ["sh", "-c", script, "{}", "--tile={64,128}"])):
        rows = study(*options, "--", *words)
        assert {row[column]: row["makespan_s"] for row in rows} == wanted, (rows, wanted)
    # of other commands, arguments are as they are
    tabulated = testing.duet(*SIMULATE, "--gpus", "1,2", "--", "sh", "-c", "echo $0 >&2; exit 3",
                             "{1,2}", env=environment())
    assert (tabulated.stdout + tabulated.stderr).count("status 3: {1,2}") == 1, tabulated
    for n in "256", "512":
        both = duet("study", "--platform", "idgraf", "--extrapolate", "--quiet", "--out", "both.db",
                    "--", QR[0], n, "{64,128}")
    assert all(both.count(f"tiled_qr {n} '{{2}}'") == 2 for n in ("256", "512")), both


def check_barred():
    """What a reduction keeps off GPUs is named, with what does that, wherever a run ends."""
    if "ASAN_OPTIONS" in os.environ:
        return  # a program that is not sanitized cannot use a library that is
    text = (ROOT / "examples/dot_product.c").read_text(encoding="utf-8")
    whole = ".implementation_count = 2"
    source = text.replace(whole, whole.replace("2", "name[0] == 'c' ? 1 : 2"))
    subprocess.run([os.environ.get("DUET_CC") or "cc", "-std=c11", "-w", "-x", "c", "-",
                    f"-I{ROOT}/core/include", "-o", "dot", f"-L{EXAMPLES.parent}", "-lduet",
                    "-lm", f"-Wl,-rpath,{EXAMPLES.parent}"], input=source, text=True, check=True)
    wanted = "no c2050 could run dot: clear, which initialises what it reduces, cannot run there"
    for program, keeps in (EXAMPLES / "dot_product", False), ("./dot", True):
        ran = subprocess.run([program], env=environment(DUET_SIMULATE="idgraf", DUET_REPORT="1",
                                                        DUET_TRACE="dot.json"),
                             check=True, capture_output=True, text=True)
        told = ["explain", "dot.json", "--no-what-if"]
        for shown in (duet(*told), duet(*SIMULATE, "--", program), ran.stderr):
            assert (wanted in " ".join(shown.split())) == keeps, shown
        assert json.loads(duet(*told, "--json"))["barred"] == (wanted if keeps else None)


def check_run():
    text = duet("run", "--json", "--reps", "2", "--policy", "ws,eager", "--cpus", "2", "--", *QR)
    for series in json.loads(text)["runs"]:
        assert series["world"] == "real" and series["tasks"] == 30, series
        assert series["warmups"] == 0 and len(series["makespan_s"]["values"]) == 2, series


def kernels(name):
    """(kernel, workload) of a platform's file."""
    platform = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
    return {(curve["kernel"], curve["context"]) for curve in platform["curves"]}


def check_calibrate():
    text = duet("calibrate", "--json", "--reps", "2", "--budget", "0.1s", "--no-costs",
                "--no-copies", "--cpus", "2", "--out", "mine.json", "--", *QR)
    runs = json.loads(text)["runs"]
    assert [(run["workload"], run["workers"]) for run in runs] == \
        [("tiled_qr", "alone"), ("tiled_qr", "busy")], runs
    wanted = {(name, "tiled_qr") for name in ("dgeqrt", "dtpqrt", "dgemqrt", "dtpmqrt")}
    assert kernels("mine.json") == wanted, kernels("mine.json")
    simulated = json.loads(duet("simulate", "--platform", "./mine.json", "--json", "--", *QR))
    assert simulated["runs"][0]["makespan_s"]["median"] > 0
    # a setup that fails, last in one round and first in the next, does not end the rounds
    half = subprocess.run(
        [DUET, "calibrate", "--json", "--reps", "3", "--no-costs", "--no-copies", "--cpus", "2",
         "--out", "half.json", "--", "sh", "-c", '[ "$DUET_CPUS" = 1 ] && exec "$0" "$@"', *QR],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert half.returncode == 1 and "ended with status 1" in half.stderr, half
    assert json.loads(half.stdout)["rounds"] == 3, half.stdout
    # processes at once leave a trace each, and what is made of these has no order
    programs = [subprocess.Popen(QR, stdout=subprocess.DEVNULL, env=environment(
        DUET_TRACE="trace-%u.json", DUET_CPUS=cpus)) for cpus in "1212"]
    assert not any(program.wait() for program in programs)
    names = sorted(map(str, pathlib.Path(".").glob("trace-*.json")))
    results = [json.loads(duet("calibrate", "--json", "--from", "--budget", "0.1s", "--no-costs",
                               "--no-copies", "--replace", "--out", "from.json", *order))
               for order in (names, names[::-1])]
    assert sorted((run["workers"], run["runs"], run["tasks"]) for run in results[0]["runs"]) == \
        [("alone", 2, 60), ("busy", 2, 60)], results
    assert kernels("from.json") == wanted
    assert sum(kernel["samples"] + kernel["rejected"] for kernel in results[0]["kernels"]) == 120
    for first, second in zip(*(result["kernels"] for result in results)):
        assert (first["kernel"], first["samples"]) == (second["kernel"], second["samples"])
        assert abs(first["mean_s"] / second["mean_s"] - 1) < 1e-9, (first, second)
    direct()
    elsewhere = pathlib.Path(names[0]).read_text(encoding="utf-8").replace('"cpu"', '"vax"')
    pathlib.Path("elsewhere.json").write_text(elsewhere, encoding="utf-8")
    for name, says in (("direct.json", "is of a simulation"), ("mine.json", "no trace of duet's"),
                       ("elsewhere.json", "whose vax this machine has not"),
                       ("nonesuch.json", "cannot open")):
        result = testing.duet("calibrate", "--from", name, "--out", "no.json", env=environment(),
                              status=2)
        assert says in result.stderr, result
    assert not pathlib.Path("no.json").exists()


def check_validate():
    """At a platform's pace, and on this machine from what is measured along with it."""
    paced = ["--emulate", "idgraf", "--scale", "0.1", "--cpus", "1", "--gpus", "1"]
    here = ["--calibrate", "--calibrate-time", "0.1s", "--cpus", "1,2", "--gpus", "0"]
    for options, cases in (paced, 1), (here, 2):
        text = duet("validate", "--json", "--policy", "heft", "--rounds", "1", "--reps", "1",
                    "--sim-reps", "1", "--keep-disturbed", *options, "--", *QR)
        found = json.loads(text)["cases"]
        assert len(found) == cases, text
        for case in found:
            assert case["workload"] == "tiled_qr" and not case["failure"], case
            assert case["predicted"]["median_s"] > 0 and case["measured"]["median_s"] > 0, case
            assert case["explanation"]["parts"], case


def check_ends(*options):
    """An interrupt ends the program, and what that has started."""
    marker = pathlib.Path("begun")
    marker.unlink(missing_ok=True)
    _, message = interrupted(*options, "--", "sh", "-c", "sleep 1000 & echo $$ $! > begun.$$; "
                             "mv begun.$$ begun; wait", env=environment(), number=signal.SIGTERM,
                             when=lambda process: marker.exists() and children_of(process))
    assert "interrupted" in message, message
    for number in marker.read_text(encoding="ascii").split():
        until(lambda number=number: not is_alive(number))


def check_terminal(*options):
    """What asks at the terminal is not stopped by it: programs are in another session."""
    script = "read -r a b c d e own rest < /proc/$$/stat; echo session $own >&2; exit 1"
    result = testing.duet(*options, "--", "sh", "-c", script, env=environment())
    session = re.search(r"session (\d+)", result.stderr)
    assert session and int(session[1]) != os.getsid(0), result


def main():
    if not QR[0].exists():
        print("skipped: no example programs")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_bad()
        check_figures()
        check_simulate()
        check_study()
        check_barred()
        check_run()
        check_calibrate()
        check_validate()
        check_ends(*SIMULATE, "--reps", "4", "--jobs", "2")
        check_ends("run")
        check_terminal(*SIMULATE)
        check_terminal("run")


main()
