# SPDX-License-Identifier: Apache-2.0
"""`duet study`: rows are what `duet simulate` says, nothing is simulated twice, and lists of values
in `simulate` and `run`."""

import csv
import functools
import io
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import xml.etree.ElementTree

import testing
from testing import DUET, ROOT

os.chdir(tempfile.mkdtemp())
duet = functools.partial(testing.duet, status=0)
TABLE = ["cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480,960", "--gpus",
         "1,2", "--policy", "ws,heft"]
ONE = ["cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480"]


def rows(path, what="*", more=""):
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    with connection:
        found = [dict(row) for row in connection.execute(f"SELECT {what} FROM runs {more}")]
    connection.close()
    return found


def some_rows(path):
    try:
        return rows(path, "id", "LIMIT 1")
    except sqlite3.OperationalError:  # it has no tables yet
        return []


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


# Rows are what `duet simulate --csv` says of the command in them, digit by digit.
noisy = ["study", *TABLE, "--out", "a.db", "--noise", "--reps"]
first = duet(*noisy, "1")
made = rows("a.db")
assert len(made) == 2 * 2 * 2 and not first.stderr, first
assert {(row["seed"], row["noise"]) for row in made} == {(1, 1)}
for row in made[::3]:
    [alone] = table(duet(*row["command"].split()[1:], "--csv").stdout)
    for name, text in alone.items():
        value = {"True": "1", "False": "0", "true": "1", "false": "0"}.get(text, text)
        mine = row[name]
        if isinstance(mine, float):
            assert mine == float(value), (name, row, alone)
        else:
            assert str("" if mine is None else mine) == value, (name, row, alone)

# What is there is not simulated again; what is added is.
before = rows("a.db", "id, wall_s", "ORDER BY id")
again = duet(*noisy, "1")
assert again.stdout == first.stdout and rows("a.db", "id, wall_s", "ORDER BY id") == before
made = duet(*noisy, "3").stdout
assert rows("a.db", "id, wall_s", "ORDER BY id")[:len(before)] == before
assert [row["seed"] for row in rows("a.db", "seed", "ORDER BY seed")] == sorted([1, 2, 3] * 8)
shown = duet("study", "--show", "--out", "a.db").stdout
assert shown == made, (shown, made)
assert re.search(r"^1 +480 +\w+ .* (sure|\d within noise)$", shown, re.M), shown
assert "one setting for all 2 cases: " in shown
assert re.search(r"^mean rank of policy in 4 cases: heft 1.00, ws 2.00; closer than 0.98 is not "
                 r"told apart \(Nemenyi, 5%\)\nheft against each other \(p of Wilcoxon's signed "
                 r"ranks, by Holm\): ws 0.12$", shown, re.M), shown
by_policy = duet("study", "--show", "--out", "a.db", "--best", "policy").stdout
assert len(re.findall(r"^\d", by_policy, re.M)) == 4, by_policy
assert len(table(duet("study", "--show", "--out", "a.db", "--csv").stdout)) == 24
even = duet("study", ROOT / "examples/graphs/diamond.json", "--platform", "idgraf", "--out", "e.db",
            "--reps", "3", "--noise", "--policy", "heft,cp").stdout
assert even.endswith("  no spread\n") and "+-" not in even, even

# A platform that has changed is another one; the newest result counts.
duet("platform", "new", "--cpus", "1x8", "--gpus", "2:a100", "--out", "m.json")
own = ["study", "cholesky", "--platform", "./m.json", "--tile", "960", "--n", "3840,5760", "--out",
       "m.db"]
duet(*own)
text = pathlib.Path("m.json").read_text(encoding="utf-8")
pathlib.Path("m.json").write_text(text + "\n", encoding="utf-8")
shown = duet(*own).stdout
assert shown.startswith("estimated, not measured: times of dpotrf, "), shown
assert len(rows("m.db")) == 2  # a blank more is the same machine
shutil.copy("m.db", "old.db")
duet("platform", "new", "--cpus", "1x8", "--gpus", "2:h100", "--out", "m.json", "--replace")
duet(*own)
assert len(rows("m.db")) == 4 and len(rows("m.db", "DISTINCT platform_hash")) == 2
assert len(re.findall(r"^\d", duet("study", "--show", "--out", "m.db").stdout, re.M)) == 2
duet(*own[:-1], "latest.db")
merged = duet("study", "--out", "both.db", "--merge", "latest.db", "old.db").stdout
assert merged == duet("study", "--show", "--out", "latest.db").stdout, merged
with sqlite3.connect("both.db") as connection:
    connection.execute("UPDATE runs SET build = 'one' WHERE n = 3840")
connection.close()
shown = duet("study", "--show", "--out", "both.db").stdout
assert re.search("^made by several builds of duet: [^,\n]+, one$", shown, re.M), shown

# So is a program's script, and a task graph whose kernel times StarPU may have measured.
duet("export", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480", "--out",
     "graph.json")
pathlib.Path("models/codelets/45").mkdir(parents=True)
os.environ["STARPU_PERF_MODEL_DIR"] = os.path.abspath("models")
for words, changed in ((["--", "sh", "script.sh"], "script.sh"),
                       (["graph.json"], "models/codelets/45/potrf.here")):
    for text, count in (("one", 1), ("two", 2), ("one", 2)):
        pathlib.Path(changed).write_text(f"exit 3 # {text}", encoding="utf-8")
        subprocess.run([DUET, "study", "--platform", "idgraf", "--out", "inputs.db", *words],
                       capture_output=True, check=False)
        assert len(rows("inputs.db")) == count, (words, text)
    os.unlink("inputs.db")

# A file that cannot be read to its end is no shorter one.
contents = pathlib.Path("a.db").read_bytes()
pathlib.Path("torn.db").write_bytes(contents[:-20480] + b"\xff" * 20480)
for more in [], ["--csv"]:
    duet("study", "--show", "--out", "torn.db", *more, status=2)

# A name that was mistyped in capitals does not spoil the file.
for status, name in ((2, "PCIe"), (0, "pcie")):
    duet("study", *ONE, "--link", f"{name}=2x", "--out", "names.db", status=status)
assert len(rows("names.db", "id", "WHERE link_pcie = '2x' AND makespan_s > 0")) == 1

# A disk that is full at the first table, or at the first row: one line says so.
for blocks, status, out in ((60, 2, ""), (80, 1, "no run has a result\n")):
    words = " ".join(["study", *ONE, "--out", f"full-{blocks}.db"])
    full = subprocess.run(["sh", "-c", f"ulimit -f {blocks}; exec {DUET} {words}"],
                          capture_output=True, text=True, check=False)
    assert full.returncode == status and full.stdout == out, full
    assert len(full.stderr.splitlines()) == 1 and "disk I/O error" in full.stderr, full

# The page, of what is made or there; where it cannot be written, nothing is simulated.
duet("study", *ONE, "--out", "page.db", "--html", "page.html")
pathlib.Path("page.html").write_text("old", encoding="utf-8")
duet("study", "--show", "--out", "page.db", "--html", "page.html")
page = pathlib.Path("page.html").read_text(encoding="utf-8")
assert page.startswith("<!doctype html>") and page.endswith("</html>\n") and '"study":true' in page
line = f'"command":"duet study {" ".join(ONE)} --out page.db --html page.html"'  # not of --show
assert line in page, page[-5000:]
duet("study", *ONE, "--link", "PCIe=2x", "--out", "page.db", status=2)

# For papers: each chart is drawn from the numbers beside it, which are those of the data base.
SHOW = ["study", "--show", "--out", "a.db"]
tex = duet(*SHOW, "--svg", "charts/a", "--table", "latex").stdout.splitlines()
assert tex[1] == r"\begin{tabular}{lrr}" and tex[3] == r"gpus & heft & ws \\", tex
pm = r" \$\\pm\$ 0\.\d+"
assert re.fullmatch(rf"1 & \\textbf\{{0\.\d{{5}}\}}{pm} & 0\.\d{{5}}{pm} \\\\", tex[5]), tex
means = {(row["gpus"], row["policy"]): row["mean"] for row in rows(
    "a.db", "gpus, policy, min(mean) AS mean FROM (SELECT *, avg(makespan_s) AS mean",
    "GROUP BY gpus, tile, policy) GROUP BY gpus, policy")}
names = {path.stem for path in pathlib.Path("charts/a").iterdir()}
assert names == {"effects", "ranking-gpus", "ranking-tile", "ranking-policy", *(
    f"{name}-over-{over}" for over in ("gpus", "tile") for name in ("makespan", "speed", "bound")),
    "speedup-over-gpus", "efficiency-over-gpus"}, names
for name in names:
    lines = table(pathlib.Path(f"charts/a/{name}.csv").read_text(encoding="utf-8"))
    picture = xml.etree.ElementTree.parse(f"charts/a/{name}.svg").getroot()
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    marks = sum("fill" in one.attrib and "transform" in one.attrib for one in picture.iter())
    assert marks == (0 if "ranking" in name else len(lines) + ("over" in name) * 2), (name, marks)
    assert "gpus" not in name or "over" not in name or {"gpus", "1", "2", "ws"} < {*texts}, texts
lines = table(pathlib.Path("charts/a/makespan-over-gpus.csv").read_text(encoding="utf-8"))
assert {(int(one["gpus"]), one["policy"]): round(float(one["makespan_s"]), 9) for one in lines} == {
    key: round(mean, 9) for key, mean in means.items()}, (lines, means)
[p] = [one["p"] for one in table(pathlib.Path("charts/a/ranking-policy.csv").read_text(
    encoding="utf-8")) if one["value"] == "ws"]
assert float(p) == 0.125

# Own policies are paths: they are compared with each other one, and named by what differs.
os.mkdir("policies_of_my_own")
for name in "own_best", "own_second":
    shutil.copy(pathlib.Path(os.environ["DUET_BUILD_DIR"], "examples/policies/random_worker.so"),
                f"policies_of_my_own/{name}.so")
text = duet("study", *ONE[:-4], "--n", "1920,3840", "--tile", "480", "--noise", "--reps", "3",
            "--gpus", "1,2", "--cpus", "4", "--link", "pcie=1x,2x", "--policy",
            "heft,./policies_of_my_own/own_best.so,./policies_of_my_own/own_second.so",
            "--out", "own.db", "--svg", "charts/own").stdout
assert re.search(r"^\./policies_of_my_own/own_best\.so against each other .*: heft 0.016, "
                 r"\./policies_of_my_own/own_second\.so 1$", text.replace("\n  ", " "), re.M), text
assert re.search(r" heft .* own_best +sure$", text, re.M), text
assert ">own_best (" in pathlib.Path("charts/own/ranking-policy.svg").read_text(encoding="utf-8")
text = duet("study", *ONE, "--policy", "ws", "--out", "1.db", "--svg", "charts/one").stderr
assert "no charts in charts/one: no setting has several values with results" in text, text
pathlib.Path("a_file").write_text("", encoding="utf-8")
for words, message in ((["--svg", "a_file"], "cannot make the folder a_file"),
                       (["--table", "tex"], "--table takes text or latex, not 'tex'"),
                       (["--table", "latex", "--csv"], "--csv and --table")):
    assert message in duet(*SHOW, *words, status=2).stderr, words
duet("study", "--show", "--out", "page.db", "--html", "page.html")  # it has no values in the page
assert '"link_pcie"' not in pathlib.Path("page.html").read_text(encoding="utf-8")
for out, said in (("no/page.html", "No such file"), ("new.db", "--html and --out are one file"),
                  ("", "--html takes the name of a file"), ("-", "'-' is not standard output")):
    refused = duet("study", *ONE, "--out", "new.db", "--html", out, status=2)
    assert said in refused.stderr and len(refused.stderr.splitlines()) == 1, refused
    assert not os.path.exists("new.db") and not refused.stdout
assert "'-' is not" in duet("study", *ONE, "--out", "-", status=2).stderr
assert not os.path.exists("-")
pathlib.Path("c.json").write_text('{"schema": 1, "cases": [{"n": [1920, 3840]}]}', encoding="utf-8")
refused = duet("study", *ONE[:3], "--cases", "c.json", "--html", "c.json", status=2)
assert "--cases and --html are one file" in refused.stderr, refused
os.mkdir("folder.html")
for words in (["--show"], ONE):
    refused = duet("study", *words, "--out", "page.db", "--html", "folder.html", status=2)
    assert "folder.html" in refused.stderr and not refused.stdout, refused

# Shards, each in a file of its own, are the whole together; what a list in `simulate` prints, too.
for shard in "12":
    duet("study", *TABLE, "--shard", f"{shard}/2", "--out", f"part-{shard}.db")
duet("study", "--out", "whole.db", "--merge", "part-1.db", "part-2.db")
duet("study", *TABLE, "--fraction", "1/2", "--out", "half.db")
assert len(rows("half.db")) == 4 and len(rows("half.db", "DISTINCT tile")) == 2
listed = duet("simulate", *TABLE, "--csv")
assert not listed.stderr, listed
listed = table(listed.stdout)
assert "wall_s" not in listed[0]
assert ({(row["command"], float(row["makespan_s"])) for row in listed}
        == {(row["command"], row["makespan_s"]) for row in rows("whole.db")})
flags = duet("simulate", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480",
             "--set-arch=0,1", "--link", "pcie=1x,2x", "--policy", "heft").stdout
assert re.search(r"^0 +1x .*\n0 +2x .*\n1 +1x .*\n1 +2x ", flags, re.M), flags
# Names are in the order in which they were given, numbers ascend.
named = duet("simulate", *ONE[:-1], "960,480", "--policy", "ws,heft,dmda", "--link",
             "pcie=1x,10x,2x", "--set-arch").stdout
assert re.findall(r"^(\d+) +(\w+) +(\w+) ", named, re.M) == [
    (tile, policy, link) for tile in ("480", "960") for policy in ("ws", "heft", "dmda")
    for link in ("1x", "10x", "2x")], named
run = duet("run", "cholesky", "--n", "128,256", "--tile", "64", "--cpus", "1", "--reps", "2",
           "--verify", "--quiet")
assert re.search(r"^128 .*\n256 ", run.stdout, re.M), run

# Files, with what the command line says of all.
pathlib.Path("cases.json").write_text('{"schema": 1, "cases": [{"workload": ["cholesky", "lu"], '
                                      '"n": 1920}, {"workload": "qr", "n": "1920,3840"}]}',
                                      encoding="utf-8")
duet("study", "--cases", "cases.json", "--platform", "idgraf", "--tile", "480", "--out", "c.db")
assert len(rows("c.db")) == 4 and len(rows("c.db", "DISTINCT workload")) == 3

# Settings that are no simulation are noted, and cost the others nothing; the status says that some,
# or all, have no result, however often, and the reason is said once.
for sizes, status, said in (("1920,3840", 1, "duet: 1 of 4 runs have no result\n"),
                            ("960", 2, "duet: no run is possible: ")):
    for command in ("study", "--out", "s.db"), ("study", "--out", "s.db"), ("simulate",):
        some = duet(*command, "cholesky", "--platform", "idgraf", "--n", sizes, "--tile",
                    "1000,2880", "--extrapolate", status=status)
        assert some.stderr.startswith(said) and len(some.stderr.splitlines()) == 1, some
        assert some.stdout.count("without a result: 1 run: ") == (status == 1), some
        assert (some.stdout + some.stderr).count("use tiles of ") == 1, some
assert len(rows("s.db", more="WHERE error IS NULL")) == 3

# A failure on a platform that has changed since is none any more, nor is a result.
for cpus, status in ("1x4", 2), ("1x8", 0), ("1x6", 2):
    duet("platform", "new", "--cpus", cpus, "--out", "p.json", "--replace")
    duet("study", ONE[0], "--platform", "./p.json", *ONE[3:], "--cpus", "8", "--out", "p.db",
         status=status)
    shown = duet("study", "--show", "--out", "p.db").stdout
    assert ("without a result: 1 run: " in shown) == (status > 0), shown
    assert ("makespan" in shown) == (status == 0), shown

# Ctrl-C keeps what is finished.
_, said = testing.interrupted(
    "study", "cholesky", "--platform", "idgraf", "--n", "3840..38400:1920", "--tile", "240,480,960",
    "--gpus", "1..8", "--policy", "all", "--out", "i.db", "--quiet", when=lambda process:
    os.path.exists("i.db") and testing.children_of(process) and some_rows("i.db"))
assert int(re.search(r"interrupted: (\d+) of", said)[1]) == len(rows("i.db")), said
assert not os.path.exists("i.db-wal")

# Bad usage: one line, status 2, and no file.
testing.refuse_all("", (
        ("study", "which workload? duet"),
        ("study cholesky", "which machine?"),
        ("study cholesky --platform idgraf --shard 4/3", "--shard takes a part"),
        ("study cholesky --platform idgraf --shard 0/3", "--shard takes a part"),
        ("study cholesky --platform idgraf --fraction 1", "--fraction takes a part"),
        ("study cholesky --platform idgraf --trace f.json", "unknown option --trace"),
        ("study --cases none.json", "none.json"),
        ("study --show --merge", "exclude each other"),
        ("study --show cholesky", "--show makes no runs"),
        ("study --show --out none.db", "there is no none.db"),
        ("study --show --out cases.json", "cases.json is no file of results"),
        ("study --merge --out whole.db", "--merge takes the files"),
        ("study --merge none.db --out whole.db", "there is no file none.db"),
        ("study --merge cases.json --out whole.db", "cases.json is no file of results"),
        ("study --show --out whole.db --best colour", "--best: no run was given --colour"),
        ("simulate cholesky --platform idgraf --tile 480,960 --json", "--json is of one setting"),
        ("simulate cholesky --platform idgraf --tile 480,960 --html a.html", "--html is of one"),
        ("simulate cholesky --platform idgraf --tile 480,480", "--tile names 480 twice"),
        ("simulate cholesky lu --platform idgraf --tile 480,960", "one workload at a time"),
        ("simulate cholesky --tile 480,960", "which machine?")))
assert not os.path.exists("study.db") and not os.path.exists("none.db")
