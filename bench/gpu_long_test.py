# SPDX-License-Identifier: Apache-2.0
"""bench/gpu.py at tiny sizes, on a fake GPU: every part gives rows that are verified, what fails is
listed while the rest goes on, and the report has all of it. No figure is looked at."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gpu_parts
from repository import BUILD, ROOT, SKIPPED, skip

FAKE = pathlib.Path(os.environ.get("DUET_FAKE_CUDA") or BUILD / "tests" / "duet_fake_cuda")
PEERS = ["cuda_peers", "overhead_cuda"]
PARTS = ["calibrate", "overhead", "gemm", "cholesky", "lu", "overlap", "memory"]


def programs_in(folder, **others):
    """A folder with the fake programs under the names of the real ones."""
    folder.mkdir()
    for name in PEERS:
        (folder / name).symlink_to(others.get(name, BUILD / "tests" / f"{name}_fake"))
    return folder


def gpu(*arguments, duet=FAKE, **variables):
    command = [sys.executable, ROOT / "bench" / "gpu.py", "--quick", "--duet", duet, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=1000, check=False,
                          env={**os.environ, "FAKE_CUDA_DEVICES": "1", **variables})


def load(path):
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def check_rows(record):
    for row in record["rows"]:
        assert row["least"] <= row["median"] <= row["most"], row
        assert row["values"] and row["unit"] and row["peer"], row
        if row["part"] == "calibrate":
            continue
        assert row["least"] > 0, row
        if not row.get("choice"):
            assert row["verified"] is True, row


def check_choices(record):
    """What is measured out of core is what was the best of those that were tried."""
    rows = [row for row in record["rows"] if row["peer"] == "duet" and row["part"] == "gemm"]
    tried = {(row["tile"], row["window"], row["params"]): row["back"] for row in rows
             if row.get("choice")}
    assert {key[1] for key in tried} == {2, 8}, tried
    assert {key[2] for key in tried} == {"block=4", "block=8"}, tried
    best = max(tried, key=tried.get)
    taken = {(row["tile"], row["window"], row["params"]) for row in rows
             if row["slab"] and not row.get("choice")}
    assert taken == {best}, (taken, tried)
    for workload in "cholesky", "lu":
        rows = [row for row in record["rows"] if row["part"] == workload and row.get("choice")]
        for slab in True, False:
            windows = {row["window"] for row in rows if bool(row["slab"]) is slab}
            assert windows >= {2, 8}, (workload, slab, windows)


class Clock:
    """A session whose runs take so many seconds of 60 each; the rate is the variant's number."""

    def __init__(self, *seconds):
        self.seconds, self.now, self.part, self.omitted = list(seconds), 60, "gemm", []
        self.record = {"rows": []}

    def left(self):
        return self.now

    def omit(self, what, why):
        self.omitted.append((what, why))

    def duet(self, workload, number, choice, more=0):
        self.now -= self.seconds.pop(0)
        return [{"workload": workload, "median": number + more, "choice": choice}]


def check_choice_within_time():
    """A choice takes a sixth of the time, but for its first run; options are tried one by one."""
    for seconds, best, omitted in ((1, 1, 1), 9, 0), ((4, 4, 4), 9, 1), ((40, 1, 1), 3, 1):
        clock = Clock(*seconds)
        assert gpu_parts.choose(clock, "gemm", {"number": [3, 9, 5]}) == {"number": best}, seconds
        assert len(clock.omitted) == omitted, (seconds, clock.omitted)
    clock = Clock(1, 1, 1, 1)
    assert gpu_parts.choose(clock, "gemm", {"number": [3, 9], "more": [0, 2, -1]}) == {
        "number": 9, "more": 2}
    assert not clock.seconds


def check_help():
    """Each option once in the list, with a text of its own."""
    text = gpu("--help", COLUMNS="300").stdout
    listed = [line.split() for line in text.splitlines() if line.startswith("  -")]
    names = [words[0] for words in listed]
    assert len(names) == len(set(names)) > 20 and all(len(words) > 3 for words in listed), text
    assert text.count("--gemm-n ") == 2 and "Usage:" not in text, text  # in the usage, and listed


def check_everything(folder, programs):
    """One precision, so that it is quick; the other one is in the next check."""
    path = folder / "all.md"
    result = gpu("--output", path, "--budget", 900, "--precisions", "d", "--programs", programs)
    assert result.returncode == 0, result.stderr
    record = load(path)
    assert not record["failures"], record["failures"]
    check_rows(record)
    parts = [row["part"] for row in record["rows"]]
    assert set(parts) == set(PARTS), set(PARTS) - set(parts)
    for part, peers in {"gemm": {"cublas", "cublasxt", "duet"}, "cholesky": {"cusolver", "duet"},
                        "lu": {"cusolver", "duet"}, "memory": {"cublas", "duet"}}.items():
        assert {row["peer"] for row in record["rows"] if row["part"] == part} == peers, part
    policies = {row["policy"] for row in record["rows"] if row["part"] == "cholesky"
                and row["peer"] == "duet"}
    assert policies == {"ws", "locality-aware", "heft", "eager"}, policies
    windows = {row["window"] for row in record["rows"] if row["part"] == "overlap"}
    assert windows == {None, 1, 4, 16}, windows
    check_choices(record)
    goals = [goal["goal"] for goal in record["goals"]]
    assert len(goals) == 6 and all(goal["reached"] is (goal["figure"] >= goal["bound"])
                                   for goal in record["goals"]), goals
    text = path.read_text(encoding="utf-8")
    for title in ("Goals", "Copies, and what", "What a task", "Matrix product",
                  "Cholesky", "LU", "Overlap", "SAXPY", "Commands", "duet info"):
        assert f"\n## {title}" in text, title
    for row in record["rows"]:
        assert row["command"] in text, row["command"]
    return path


def check_append(path, programs):
    """A part that is measured again replaces its rows; the others stay."""
    before = load(path)
    result = gpu("--output", path, "--append", "--only", "memory", "--budget", 900, "--precisions",
                 "s", "--programs", programs)
    assert result.returncode == 0, result.stderr
    record = load(path)
    others = [row for row in before["rows"] if row["part"] != "memory"]
    assert [row for row in record["rows"] if row["part"] != "memory"] == others
    assert {row["precision"] for row in record["rows"] if row["part"] == "memory"} == {"s"}
    assert len(record["runs"]) == 2 and record["goals"] == before["goals"], record["runs"]


def check_failures(folder, programs):
    """A program that fails is in the report, and the others' figures too; so are checks."""
    path = folder / "failed.md"
    broken = programs_in(folder / "broken", overhead_cuda="/bin/false")
    tests = folder / "tests"
    tests.mkdir()
    for name, status in ("one", 0), ("two", 3), ("three", SKIPPED):
        (tests / name).write_text(f"#!/bin/sh\necho {name} is over\nexit {status}\n",
                                  encoding="utf-8")
        (tests / name).chmod(0o755)
    result = gpu("--output", path, "--only", "tests,calibrate,overhead", "--tests", tests,
                 "--budget", 900, "--programs", broken)
    assert result.returncode == 1, result
    assert "two: failed (status 3): two is over" in result.stdout, result.stdout
    record = load(path)
    assert len(record["failures"]) == 12 and "status 1" in record["failures"][0]["why"], record
    assert {row["part"] for row in record["rows"]} == {"calibrate"}, record["rows"]
    assert (folder / "machine.json").exists()
    text = path.read_text(encoding="utf-8")
    assert "\n## What failed" in text and "1 passed, 1 failed, 1 skipped" in text, text
    assert "two is over" in text and (folder / "logs" / "one.log").exists(), text
    result = gpu("--output", path, "--only", "gemm", "--budget", 900, "--precisions", "d",
                 "--programs", programs, PEERS_TEST_BREAK="dgemm")
    assert result.returncode == 1, result
    assert any("a wrong result" in failure["why"] for failure in load(path)["failures"])


def check_time(folder, programs):
    """Without time things are left out, not failed."""
    path = folder / "late.md"
    result = gpu("--output", path, "--only", "cholesky", "--budget", 1, "--programs", programs)
    assert result.returncode in (0, SKIPPED), result
    if result.returncode == 0:
        assert load(path)["omitted"] and not load(path)["failures"], load(path)


def check_absence(folder, programs):
    result = gpu("--output", folder / "none.md", "--programs", programs, FAKE_CUDA_DEVICES="0")
    assert result.returncode == SKIPPED and "1 GPU is wanted" in result.stderr, result
    assert not (folder / "none.md").exists()
    assert gpu("--only", "nothing").returncode == 2
    assert gpu(duet="/nowhere/duet").returncode == 2


if not all((BUILD / "tests" / f"{name}_fake").exists() for name in PEERS) or not FAKE.exists():
    skip("the fake GPU is built where CUDA and BLAS are")
if "TSAN_OPTIONS" in os.environ:
    skip("what runs here is tested under sanitizers by itself")
check_help()
check_choice_within_time()
with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    fakes = programs_in(place / "programs")
    check_append(check_everything(place, fakes), fakes)
    check_failures(place, fakes)
    check_time(place, fakes)
    check_absence(place, fakes)
