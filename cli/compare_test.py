# SPDX-License-Identifier: Apache-2.0
"""`duet compare`: traces are explained by what was changed between them, reports are matched, and
what is no file of duet's is refused with one line."""

import csv
import io
import json
import math
import pathlib
import tempfile

from testing import ROOT, duet, refused

# One GPU computes all the time, so that what it takes longer for is the makespan's.
GEMM = "gemm --n 3840 --tile 960 --cpus 0 --gpus 1"
CHOLESKY = "cholesky --n 4800 --tile 960 --cpus 4 --gpus 8"


def simulate(arguments, platform="idgraf"):
    """Standard output, and a file if the arguments name one."""
    result = duet("simulate", *arguments.split(), "--platform", platform, "--quiet", status=0)
    return result.stdout


def compare(*arguments, status=0, notes=""):
    result = duet("compare", *arguments)
    assert result.returncode == status, (arguments, result)
    assert notes in result.stderr and bool(notes) == bool(result.stderr), (arguments, result)
    return result.stdout


def case(*arguments, **options):
    """The only case of a comparison; what explains it adds up."""
    cases = json.loads(compare(*arguments, "--json", **options))["cases"]
    assert len(cases) == 1, cases
    explanation = cases[0]["explanation"]
    if explanation:
        whole = sum(part["seconds"] for part in explanation["parts"])
        # a nanosecond is the last digit of the thousands of dates in a trace
        assert math.isclose(whole, explanation["whole_s"], rel_tol=1e-6, abs_tol=1e-6), cases
    return cases[0]


def first_part(found):
    part = found["explanation"]["parts"][0]
    return part["reason"], part["what"]


def slower_platform(folder, factor):
    """Idgraf whose dgemm takes longer on GPUs, and nothing else."""
    times = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
    for curve in times["curves"]:
        if curve["kernel"] == "dgemm" and curve["arch"] == "c2050":
            for point in curve["points"]:
                point["mean_s"] *= factor
    path = folder / "slower.json"
    path.write_text(json.dumps(times), encoding="utf-8")
    return str(path)


def test_traces(folder):
    plain, kernel, link = (str(folder / name) for name in ("plain.json", "kernel.json",
                                                           "link.json"))
    report = json.loads(simulate(f"{GEMM} --json --trace {plain}"))["runs"][0]
    simulate(f"{GEMM} --trace {kernel}", slower_platform(folder, 1.1))
    simulate(f"{GEMM} --link pcie=2GB/s --trace {link}")

    found = case(kernel, plain)
    assert first_part(found) == ("kernel", "dgemm on c2050"), found
    part = found["explanation"]["parts"][0]
    assert math.isclose(part["first"] / part["second"], 1.1, rel_tol=1e-6), part
    assert 0 < found["error"] < 0.11, found
    assert math.isclose(found["measured"]["median_s"], report["makespan_s"]["median"],
                        abs_tol=2e-9), (found, report)
    assert "dgemm on c2050" in compare(kernel, plain)

    found = case(link, plain)
    assert first_part(found) == ("to_device", ""), found
    assert case(plain, link)["error"] < 0 < found["error"]

    found = case(plain, plain)
    assert found["error"] == 0 and found["explanation"]["moved_share"] == 0, found

    # another tile and another policy: whatever it is, it adds up (case looks)
    small, many = str(folder / "small.json"), str(folder / "many.json")
    simulate(f"gemm --n 3840 --tile 480 --cpus 0 --gpus 1 --trace {small}")
    case(small, plain)
    for policy in ("ws", "heft"):
        simulate(f"{CHOLESKY} --policy {policy} --trace {folder / policy}.json")
    found = case(str(folder / "ws.json"), str(folder / "heft.json"))
    assert found["cpus"] == 4 and found["gpus"] == 8 and found["platform"] == "idgraf", found
    assert 0 < found["explanation"]["moved_share"] <= 1, found

    simulate(f"gemm --n 3840 --tile 960 --cpus 0 --gpus 2 --trace {many}")
    found = case(plain, many, notes="A has 1 workers, B has 2")
    assert found["explanation"] is None and found["error"] > 0, found


def test_reports(folder):
    both, slow, one, trace = (str(folder / name) for name in ("both.json", "slow.json", "one.json",
                                                              "trace.json"))
    pathlib.Path(both).write_text(simulate(f"{CHOLESKY} --policy ws,heft --json"),
                                  encoding="utf-8")
    pathlib.Path(slow).write_text(simulate(f"{CHOLESKY} --policy heft,eager --json "
                                           "--link pcie=1GB/s"), encoding="utf-8")
    pathlib.Path(one).write_text(simulate(f"{CHOLESKY} --policy ws --json --trace {trace}"),
                                 encoding="utf-8")

    cases = json.loads(compare(both, both, "--json"))["cases"]
    assert [(c["policy"], c["error"]) for c in cases] == [("ws", 0), ("heft", 0)], cases
    found = case(slow, both, notes="duet: only in A: ")
    assert found["policy"] == "heft" and found["error"] > 0, found
    result = duet("compare", slow, both)
    assert "only in A: cholesky, n 4800" in result.stderr and ", eager, " in result.stderr, result
    assert "only in B: cholesky, n 4800" in result.stderr and ", ws, " in result.stderr, result
    case(slow, both, "--policy", "heft")

    # limits
    share = found["error"] * 100
    compare(slow, both, "--policy", "heft", "--fail-over", f"{share * 1.01}%")
    compare(slow, both, "--policy", "heft", "--fail-over", f"{share * 0.99}%", status=1,
            notes="1 of 1 cases differ by more than")
    compare(both, slow, "--policy", "heft", "--fail-over", "0.0001", status=1, notes="differ")

    found = case(one, both, "--policy", "ws")
    assert found["error"] == 0, found

    # with a trace: by the makespan
    found = case(trace, one, notes="only the makespans")
    assert abs(found["error"]) < 1e-6 and found["explanation"] is None, found
    assert found["n"] == 4800 and found["policy"] == "ws", found
    compare(trace, both, status=2, notes="which run of B: ")
    case(both, trace, "--policy", "heft", notes="only the makespans")

    # what compare prints is read again; each side with its own kind
    again = str(folder / "again.json")
    pathlib.Path(again).write_text(compare(slow, both, "--policy", "heft", "--json"),
                                   encoding="utf-8")
    cases = json.loads(compare(again, again, "--json"))["cases"]
    assert [c["settings"] for c in cases] == ["world=predicted", "world=measured"], cases
    assert {c["policy"] for c in cases} == {"heft"}, cases
    assert all(c["error"] == 0 for c in cases), cases
    found = case(again, slow, "--policy", "heft", notes="only in A")
    assert found["settings"] == "world=predicted" and found["error"] == 0, found

    # policies are ranked among runs of one kind: both kinds have two, which are faster in turn
    pathlib.Path(again).write_text(json.dumps({"schema": 1, "cases": [
        {"workload": "lu", "n": 960, "tile": 96, "precision": "d", "cpus": 1, "gpus": 0,
         "policy": policy, "predicted": {"makespans_s": [predicted]},
         "measured": {"makespans_s": [measured]}}
        for policy, predicted, measured in (("ws", 1, 4), ("heft", 2, 3))]}), encoding="utf-8")
    summary = json.loads(compare(again, again, "--json"))["summary"]
    assert (summary["groups"], summary["pairs"], summary["pairs_right"]) == (2, 2, 2), summary

    # a predicted interval counts runs that were measured, not other simulations
    drawn, measured = str(folder / "drawn.json"), json.loads(simulate(
        f"{CHOLESKY} --interval run --json"))
    pathlib.Path(drawn).write_text(json.dumps(measured), encoding="utf-8")
    makespans = measured["runs"][0]["makespan_s"]
    for world, seconds, found in (("real", makespans["high"], (1, 1)),
                                  ("real", makespans["high"] * 1.01, (1, 0)),
                                  ("simulated", makespans["high"], (0, 0))):
        measured["runs"][0].update(world=world, makespan_s={"values": [seconds], "low": None})
        pathlib.Path(again).write_text(json.dumps(measured), encoding="utf-8")
        summary = json.loads(compare(drawn, again, "--json"))["summary"]
        assert (summary["intervals"], summary["inside"]) == found, (world, seconds, summary)
        summary = json.loads(compare(again, drawn, "--json"))["summary"]
        assert summary["intervals"] == 0, summary

    rows = list(csv.DictReader(io.StringIO(compare(both, both, "--csv"))))
    assert [row["policy"] for row in rows] == ["ws", "heft"], rows


def test_different(folder):
    """One run each of other problems is compared, and said to be."""
    paths = []
    for more in ("--tile 480", "--tile 960", "--tile 960 --hold --priorities none"):
        paths.append(str(folder / f"{more}.json"))
        pathlib.Path(paths[-1]).write_text(simulate(f"gemm --n 3840 {more} --cpus 0 --gpus 1"
                                                    " --json"), encoding="utf-8")
    found = case(*paths[:2], notes="different problems: A is gemm, n 3840, tile 480")
    assert found["error"] != 0, found
    case(*paths[1:], notes="B is gemm, n 3840, tile 960, ws, held, priorities none, 0 CPUs, 1 GPU")


def test_files(folder):
    trace, page = str(folder / "t.json"), folder / "page.html"
    simulate(f"{GEMM} --trace {trace}")
    compare(trace, trace, "--html", str(page))
    assert "<html" in page.read_text(encoding="utf-8"), page
    assert list(folder.glob("page.html*")) == [page], list(folder.iterdir())
    before = pathlib.Path(trace).read_bytes()
    compare("/dev/null", trace, "--html", trace, status=2, notes="--html and B are one file")
    assert pathlib.Path(trace).read_bytes() == before


def test_bad(folder):
    trace, broken, other, empty, runs = (str(folder / name) for name in (
        "t.json", "broken.json", "other.json", "empty.json", "runs.json"))
    simulate(f"{GEMM} --trace {trace}")
    text = pathlib.Path(trace).read_text(encoding="utf-8")
    pathlib.Path(broken).write_text(text[:len(text) // 2], encoding="utf-8")
    pathlib.Path(other).write_text('{"traceEvents": []}', encoding="utf-8")
    pathlib.Path(empty).write_text('{"schema": 1, "runs": []}', encoding="utf-8")
    pathlib.Path(runs).write_text('{"schema": 1, "runs": [{"n": "x"}]}', encoding="utf-8")
    page = folder / "x.html"
    for arguments, says in [
            ([trace], "two files"),
            ([trace, trace, trace], "two files"),
            ([trace, "/nope/x.json"], "/nope/x.json: cannot open"),
            ([trace, trace, "--html", "/nope/x.html"], "cannot write /nope/x.html"),
            ([trace, str(folder)], "not a regular file"),
            ([trace, broken], "broken.json:"),
            ([trace, other], "no trace of duet's"),
            ([trace, empty], "there is no run"),
            ([trace, runs], "runs.json: runs[0].n: expected a number"),
            ([trace, "/dev/zero"], "/dev/zero: not a regular file"),
            ([trace, trace, "--json", "--csv"], "exclude each other"),
            ([trace, trace, "--fail-over", "-1%"], "percentage"),
            ([trace, trace, "--fail-over", "5x"], "percentage"),
            ([trace, trace, "--policy", "ws"], "--policy"),
            ([trace, trace, "--html", ""], "--html takes the name"),
            ([trace, trace, "--nope"], "--nope"),
    ]:
        more = [] if "--html" in arguments else ["--html", page]
        refused(duet("compare", *arguments, *more), says)
        assert not page.exists(), arguments


for test in (test_traces, test_reports, test_different, test_files, test_bad):
    with tempfile.TemporaryDirectory() as scratch:
        test(pathlib.Path(scratch))
