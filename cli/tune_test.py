# SPDX-License-Identifier: Apache-2.0
"""`duet tune`: it finds what all simulations together would, programs take what it writes, and
what it runs on this machine stands beside what it has predicted."""

import functools
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

import testing

QR = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "examples" / "tiled_qr"
os.chdir(tempfile.mkdtemp())
duet = functools.partial(testing.duet, status=0)
SPACE = ["cholesky", "--platform", "idgraf", "--n", "3840", "--tile", "320,480,960", "--policy",
         "ws,heft,dmdas", "--gpu-window", "2,4"]


def tune(*words, **more):
    return json.loads(duet("tune", "--json", *words, **more).stdout)


def ask(path, query):
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


# Where there is time for all, nothing is better than what is found; a second time nothing is made.
first = tune(*SPACE, "--out", "t.db", "--budget", "3600s")
duet("study", *SPACE, "--out", "s.db")
[(best, command)] = ask("s.db", "SELECT min(makespan_s), command FROM runs")
tuned = ask("t.db", "SELECT min(makespan_s) FROM runs WHERE interval IS NULL")
assert "--out t.db --budget 3600s" in ask("t.db", "SELECT command FROM studies")[0][0]
assert tuned == [(best,)] and first["settings"] == 18, (tuned, best, first)
assert first["simulations"]["n"] == 18 and first["simulations"]["drawn"] >= 3 * 4, first
again = tune(*SPACE, "--out", "t.db", "--budget", "3600s")
assert again["simulations"] == {} and again["chosen"] == first["chosen"], again
for _ in range(2):
    large = duet("tune", *SPACE[:5], "--tile", "480,4800", "--policy", "ws", "--out", "l.db").stdout
    assert re.search(r"not\s+possible:\s+1,\s+such\s+as\s+tiles\s+of\s+4800", large), large
    duet("tune", *SPACE[:5], "--tile", "4800", "--policy", "ws", "--out", "l.db", status=2)
# The choice is the first of those with most replications, whose mean is that of these.
chosen = first["chosen"]
means = ask("t.db", "SELECT avg(makespan_s), count(*), tile, policy, gpu_window FROM runs "
            "WHERE interval = 'run' AND gpu_window NOT NULL GROUP BY tile, policy, gpu_window "
            "ORDER BY count(*) DESC, 1")
assert abs(means[0][0] / chosen["predicted_s"] - 1) < 1e-9 and means[0][1] == chosen["reps"]
assert first["draws"] == chosen["reps"] >= 8 and first["wins"] > 0, first
assert chosen["reps"] == 32 or first["lead"] > first["lead_half_width"], first
assert chosen["low_s"] < chosen["predicted_s"] < chosen["high_s"], chosen
assert [str(value) for value in means[0][2:]] == [chosen["settings"][name] for name in
                                                  ("tile", "policy", "gpu_window")], means
assert first["default"]["settings"] == {"tile": "960"} and not first["here"], first
assert first["default"]["predicted_s"] > chosen["predicted_s"] and chosen["error"] is None, first

text = duet("tune", *SPACE, "--out", "t.db", "--budget", "3600s").stdout
assert "18 settings; " in text and "not possible" not in text, text
assert "\nbest " in text and "\ndefault " in text, text
assert "\nnot verified: idgraf is not this machine\n" in text and "less time than" in text, text
assert {f"{name}={value}" for name, value in first["environment"].items()} <= set(
    text.splitlines()), text

# The default has one line, also where it is among the best, or the best.
for policies in "ws,heft", "ws,eager":
    text = duet("tune", *SPACE[:5], "--tile", "960", "--policy", policies).stdout
    rows = re.findall(r"^([^\d\n]*?) +(\w+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ ", text, re.M)
    assert sorted(policy for _, policy in rows) == sorted(policies.split(",")), text
    assert {label for label, policy in rows if policy == "ws"} <= {"default", "best, default"}, text

# What is not named is found; on a large problem from smaller ones at first, in whatever time.
whole = tune("cholesky", "--platform", "idgraf", "--n", "38400", "--budget", "0.5s")
assert whole["settings"] > 1000 and whole["simulations"]["n/8"] > 0, whole
assert {"tile", "policy", "cpus", "gpu_window", "param_block", "param_potrf"} <= set(
    whole["chosen"]["settings"]), whole
# What nobody has named needs no extrapolation: blocks that do not divide the tiles are left out.
assert not any(one["extrapolated"] for one in [*whole["best"], whole["default"]]), whole
text = duet("tune", "cholesky", "--platform", "idgraf", "--n", "9600", "--budget", "0.5s").stdout
assert re.search(r"left\s+out:\s+\d+\s+whose\s+blocks", text) and "extrapolated" not in text, text
assert "\nnot searched: --param variant, layout (" in text and "--extrapolate --param" not in text
# A kernel that stays on CPUs by default is allowed on GPUs; the tile is that of simulations.
places = tune("cholesky", "--platform", "idgraf", "--n", "9600", "--param", "potrf=cpu,any",
              "--policy", "dmdas", "--budget", "3600s")
assert places["chosen"]["settings"]["param_potrf"] == "any", places
assert places["chosen"]["settings"]["tile"] == "960", places

# Without time for drawn machines the choice is the one before them, with all that is known of it:
# each of the 20 tasks of a simulation takes a hundredth of a second on any machine.
testing.compile_policy("slow.so", popped="usleep(task ? 10000 : 0);")
cut = tune("cholesky", "--platform", "idgraf", "--n", "3840", "--tile", "960", "--gpus", "1,2",
           "--policy", "./slow.so", "--budget", "0.1s")
assert cut["chosen"]["gflops"] > 0 and cut["chosen"]["bound_s"] > 0, cut
assert cut["cut"] and not first["cut"], (cut, first)

# Tiles that were not measured are simulated if they are named, and marked.
marked = duet("tune", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "160,480",
              "--policy", "heft").stdout
assert "2 settings; simulations: 2 (n) " in marked, marked
assert re.search(r"^best +160 +[\d.]+\* ", marked, re.MULTILINE) and "extrapolated beyond" in marked

# What cannot be simulated is left out, and said. A program reads the choice from a file.
few = duet("tune", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480", "--nodes",
           "2", "--network", "switch:10Gbps,1us", "--policy", "cp,heft", "--cpus", "3",
           "--gpus", "0", "--set-arch", "--env", "tuned.env").stdout
assert re.search(r"not possible: 1, such as\s+policy cp plans", few), few
assert re.search(r"^best +heft ", few, re.MULTILINE) and "DUET_" not in few, few
assert "% more time than the default" in few, few
lines = pathlib.Path("tuned.env").read_text(encoding="ascii").splitlines()
settings = dict(line.split("=", 1) for line in lines)
assert settings == {"DUET_CPUS": "3", "DUET_GPUS": "0", "DUET_POLICY": "heft",
                    "DUET_SET_ARCH": "1", "DUET_TILE": "480"}, lines
if QR.exists():
    ran = subprocess.run([QR, "1920"], env=os.environ | settings | {
        "DUET_SIMULATE": "idgraf", "DUET_REPORT": "1", "DUET_EXTRAPOLATE": "1",
        "DUET_TRACE": "r.json"}, capture_output=True, text=True, check=True)
    assert "duet: 30 tasks on idgraf, policy heft" in ran.stdout + ran.stderr, ran
    workers = json.loads(pathlib.Path("r.json").read_bytes())["otherData"]["workers"]
    assert len(workers) == 3, workers

# On this machine: what was not measured is, and the best few are run; the fastest is the choice.
duet("calibrate", "cholesky", "--n", "256", "--tile", "32,64", "--budget", "0.2s", "--out",
     "m.json")
before = pathlib.Path("m.json").read_bytes()
here = tune("cholesky", "--platform", "./m.json", "--n", "512", "--tile", "64,128", "--policy",
            "ws,heft", "--budget", "0.6s", "--verify", "2")
assert here["here"] and here["calibrated"].endswith("tiles of 128") and here["run_reps"] == 3, here
times = [one["measured_s"] for one in [*here["best"], here["default"]] if one["measured_s"]]
assert len(times) == min(2, len(here["best"])) + 1, here
assert here["chosen"]["measured_s"] == min(times), here
assert not any(one["extrapolated"] for one in here["best"]), here
for one in [*here["best"][:2], here["default"]]:
    assert abs(one["predicted_s"] / one["measured_s"] - 1 - one["error"]) < 1e-9, one
assert pathlib.Path("m.json").read_bytes() == before and not os.path.exists("here.json")
quiet = tune("cholesky", "--platform", "./m.json", "--n", "256", "--tile", "64", "--policy", "ws",
             "--no-verify", "--budget", "0.1s")
assert quiet["here"] and quiet["run_reps"] == 0 and quiet["calibrated"] is None, quiet
# Without a platform and without tiles, the usual tile of runs is measured, simulated and run.
usual = tune("cholesky", "--n", "256", "--policy", "ws,heft", "--budget", "0.1s", "--verify", "1")
assert usual["here"] and usual["calibrated"].endswith("tiles of 256"), usual
assert usual["environment"]["DUET_TILE"] == "256" and usual["run_reps"] == 3, usual
if QR.exists():
    program = tune("--platform", "idgraf", "--extrapolate", "--policy", "ws", "--gpu-window",
                   "2", "--budget", "0.1s", "--", str(QR), "256", "{128,32,64}")
    assert {one["extrapolated"] for one in program["best"]} == {None}, program
    assert program["settings"] == 3 and set(program["environment"]) == {
        "DUET_POLICY", "DUET_GPU_WINDOW"}, program
    assert program["default"]["settings"]["arg_2"] == "128", program
    assert {one["settings"]["arg_2"] for one in program["best"]} <= {"128", "32", "64"}, program


def rows_there(_process):
    try:
        return os.path.exists("i.db") and ask("i.db", "SELECT id FROM runs LIMIT 1")
    except sqlite3.OperationalError:
        return []


# An interrupt ends it with nothing written but the simulations.
out, errors = testing.interrupted("tune", "cholesky", "--platform", "idgraf", "--n", "9600",
                                  "--budget", "1000s", "--out", "i.db", "--env", "i.env",
                                  "--quiet", when=rows_there)
assert "interrupted" in errors and not out, errors
assert not os.path.exists("i.env") and ask("i.db", "SELECT count(*) FROM runs")[0][0] > 0

# So does one while this machine is measured.
out, errors = testing.interrupted("tune", "cholesky", "--platform", "./m.json", "--n", "256",
                                  "--tile", "128", "--budget", "1000s", "--env", "i.env",
                                  when=testing.children_of)
assert errors.endswith("nothing was chosen\n"), errors
assert not out and not os.path.exists("i.env"), out

# Bad usage: one line, status 2.
testing.refuse_all("tune", (
        ("", "which workload?"),
        ("cholesky lu --platform idgraf", "one workload at a time"),
        ("cholesky --platform idgraf --n 960,1920", "--n has several values"),
        ("cholesky --platform idgraf --policy none", "unknown policy 'none'"),
        ("cholesky --platform idgraf --noise", "--noise, --interval: "),
        ("cholesky --platform idgraf --tile 960,0960", "--tile names 960 twice"),
        ("cholesky --platform idgraf --budget 0", "--budget takes 0.1s or more"),
        ("cholesky --platform idgraf --verify 0", "--verify takes"),
        ("cholesky --platform idgraf --verify 2 --no-verify", "exclude each other"),
        ("cholesky --platform idgraf --n 3840 --tile 480 --cpus 0 --policy ws,heft",
         "no setting is possible: kernel dpotrf is for CPUs only"),
        ("cholesky --platform idgraf --env /nowhere/x", "/nowhere"),
        ("cholesky --platform idgraf --out -", "'-' is not standard output here"),
        ("cholesky --platform idgraf --out t.db --env ./t.db", "--out and --env are one file"),
        ("cholesky --platform ./m.json --env m.json", "--platform and --env are one file"),
        ("cholesky --platform idgraf -- true", "but not both"),
        ("cholesky --platform idgraf --tile 480 --tile-size 9", "unknown option")))
