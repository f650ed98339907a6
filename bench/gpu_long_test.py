# SPDX-License-Identifier: Apache-2.0
"""bench/gpu.py at tiny sizes, on a fake GPU: every part gives rows that are verified, what fails is
named while the rest goes on, whoever ends it loses one row at most, and the next call goes on. No
figure is looked at."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import gpu_session
from repository import BUILD, ROOT, SKIPPED, skip

FAKE = pathlib.Path(os.environ.get("DUET_FAKE_CUDA") or BUILD / "tests" / "duet_fake_cuda")
PEERS = ["cuda_peers", "overhead_cuda"]
PARTS = ["validate", "gemm", "cholesky", "lu", "overlap", "overhead", "memory"]
FILES = ["logs.tgz", "machine.json", "results.json", "results.md"]
EVERYTHING = ["--budget", 9000, "--precisions", "d"]


class Place:
    """A folder with links to the fake programs, by whose path the processes of a test are known."""

    def __init__(self, folder, **others):
        self.folder = folder
        folder.mkdir()
        (folder / "duet").symlink_to(FAKE)
        for name in PEERS:
            (folder / name).symlink_to(others.get(name, BUILD / "tests" / f"{name}_fake"))

    def command(self, *arguments):
        command = [sys.executable, ROOT / "bench" / "gpu.py", "--quick", "--duet",
                   self.folder / "duet", "--programs", self.folder, *arguments]
        return [str(word) for word in command]

    def gpu(self, *arguments, **variables):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              timeout=1000, check=False,
                              env={**os.environ, "FAKE_CUDA_DEVICES": "1", **variables})

    def wait(self, until, what):
        """Waits until it is so; on failure names the programs that run then."""
        end = time.monotonic() + 1000
        while not until():
            assert time.monotonic() < end, (what, self.processes())
            time.sleep(0.01)

    def processes(self):
        """The commands of this folder's programs that run now."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].startswith(bytes(self.folder)):
                found.append(words)
        return found


def load(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def check_rows(record):
    for row in record["rows"]:
        assert row["least"] <= row["median"] <= row["most"], row
        assert row["values"] and row["unit"] and row["peer"] and row["key"], row
        if row["part"] != "validate":
            assert row["least"] > 0 and row["verified"] is True, row


def check_plan(place, folder):
    """--plan of both calls, as on an H100: every part begins, and ends within the budget."""
    tests = folder / "tests"
    tests.mkdir()
    for name in ("backends.conformance", "workloads.kernels_cuda_gpu", "real.cuda_random_gpu"):
        (tests / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (tests / name).chmod(0o755)
    for only, parts, budget, left_out in (("checks", ["tests", "memcheck", "verify"], 130, 0),
                                          ("figures", PARTS, 540, 25)):
        words = place.command("--plan", "--budget", budget, "--only", only, "--tests", tests,
                              "--memory", 110)
        text = subprocess.run([word for word in words if word != "--quick"], text=True, check=True,
                              capture_output=True).stdout
        rows = re.findall(r"^ *([\d.]+) s  (\w+) +([\d.]+) s  ", text, re.MULTILINE)
        assert list(dict.fromkeys(part for _, part, _ in rows)) == parts, text
        assert all(float(begin) + float(lasts) <= budget for begin, _, lasts in rows), text
        assert text.count("left out") <= left_out, text
    shown = " ".join(line for line in text.splitlines() if "left out" not in line)
    for words in ("--n 65536 --precision d", "--n 32768 --precision s", "gemm-xt --n 24576"):
        assert words in shown, (words, text)
    assert not list(folder.glob("*/results*"))


def check_everything(place, folder):
    result = place.gpu("--output", folder, *EVERYTHING)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in folder.iterdir()) == FILES, list(folder.iterdir())
    record = load(folder)
    assert not record["failures"] and not record["omitted"], record
    check_rows(record)
    parts = [row["part"] for row in record["rows"]]
    assert list(dict.fromkeys(parts)) == PARTS, parts
    for part, peers in {"gemm": {"cublas", "cublasxt", "duet"}, "cholesky": {"cusolver", "duet"},
                        "lu": {"cusolver", "duet"}, "memory": {"cublas", "duet"}}.items():
        assert {row["peer"] for row in record["rows"] if row["part"] == part} == peers, part
    policies = {row["policy"] for row in record["rows"] if row["part"] == "cholesky"
                and row["peer"] == "duet"}
    assert policies == {"ws", "locality-aware", "heft", "dmdas"}, policies
    assert len({case["policy"] for case in record["validation"]["cases"]}) == 4
    names = [goal["goal"] for goal in record["goals"]]
    assert len(names) == 6 and len(set(names)) == 6, names
    text = (folder / "results.md").read_text(encoding="utf-8")
    for title in ("Goals", "Predictions", "Copies, and what", "What a task", "Matrix product",
                  "Cholesky", "LU", "Overlap", "SAXPY", "Commands", "duet info"):
        assert f"\n## {title}" in text, title
    for row in record["rows"]:
        assert row["key"] in text, row["key"]
    report = [sys.executable, ROOT / "bench" / "gpu_report.py", folder / "results.json"]
    assert subprocess.run(report, capture_output=True, text=True, check=True).stdout == text
    table = subprocess.run([*report, "--readme"], capture_output=True, text=True, check=True).stdout
    assert "| gemm | d | 256 | duet |" in table and "Predictions of 16 cases" in table, table
    with tarfile.open(folder / "logs.tgz") as tar:
        logs = [tar.extractfile(name).read().decode() for name in tar.getnames()]
    assert any("duet validate" in log or " validate " in log for log in logs), logs


def check_going_on(place, folder):
    """Existing results stay; only a named part is measured anew."""
    before = load(folder)
    result = place.gpu("--output", folder, *EVERYTHING, "--again", "memory")
    assert result.returncode == 0, result.stderr
    record = load(folder)
    assert len(record["runs"]) == 2 and len(record["rows"]) == len(before["rows"])
    for part in PARTS:
        rows = [[row["seconds"] for row in of["rows"] if row["part"] == part]
                for of in (before, record)]
        assert (rows[0] == rows[1]) is (part != "memory"), (part, rows)
    assert place.gpu("--output", folder, *EVERYTHING, FAKE_CUDA_MEMORY="640000000").returncode == 2
    assert load(folder) == record  # another GPU's: refused


def check_kills(place, folder):
    """Killed at random moments: a whole record each time, no process left, and then the rest."""
    kept, parts = [], ["validate", "overhead", "memory"]
    only = [*EVERYTHING, "--only", ",".join(parts)]
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(place.command("--output", folder, *only),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "FAKE_CUDA_DEVICES": "1"})
        more = random.randrange(1, 7)
        wanted = len({row["key"] for row in kept}) + more
        place.wait(lambda: process.poll() is not None or (
            (folder / "results.json").exists() and
            len({row["key"] for row in load(folder)["rows"]}) >= wanted), "rows")
        process.send_signal(number)
        process.wait()
        place.wait(lambda: not place.processes(), "their end")
        rows = load(folder)["rows"]
        assert rows[:len(kept)] == kept and rows, (len(rows), len(kept))
        kept = rows
    assert place.gpu("--output", folder, *only).returncode == 0
    record = load(folder)
    keys = [row["key"] for row in record["rows"]]
    assert record["rows"][:len(kept)] == kept
    assert {row["part"] for row in record["rows"]} == set(parts)
    assert keys.count("duet calibrate") == 12 and sorted(
        path.name for path in folder.iterdir()) == FILES, keys


def check_failures(place, folder):
    """A program that fails is in the report, and the others' figures too; so are checks, of which
    one goes on for ever with a program of its own."""
    broken = Place(place.folder.with_name("broken"), overhead_cuda="/bin/false")
    tests = folder.with_name("checks")
    tests.mkdir()
    for name, text in (("one", "exit 0"), ("two", "exit 3"), ("three", f"exit {SKIPPED}"),
                       ("four", f"trap '' INT; '{broken.folder}/sleep' 1000 & wait")):
        (tests / name).write_text(f"#!/bin/sh\necho {name} is over\n{text}\n", encoding="utf-8")
        (tests / name).chmod(0o755)
    (broken.folder / "sleep").symlink_to("/bin/sleep")
    result = broken.gpu("--output", folder, "--only", "tests,overhead,memory", "--tests", tests,
                        "--budget", 30)
    assert result.returncode == 1, result
    assert "two: failed (status 3): two is over" in result.stdout, result.stdout
    place.wait(lambda: not broken.processes(), "their end")
    record = load(folder)
    assert {check["name"]: check["outcome"].split()[0] for check in record["checks"]} == {
        "four": "failed", "one": "passed", "two": "failed", "three": "skipped"}, record["checks"]
    assert all("status 1" in failure["why"] for failure in record["failures"]), record["failures"]
    text = (folder / "results.md").read_text(encoding="utf-8")
    assert "\n## What failed" in text and "1 passed, 2 failed, 1 skipped" in text, text
    # another part leaves that as it is, and those that are made again replace it
    words = ["--output", folder, "--tests", tests, *EVERYTHING, "--only"]
    assert place.gpu(*words, "cholesky").returncode == 1
    assert [load(folder)[key] for key in ("checks", "failures")] == [
        record[key] for key in ("checks", "failures")]
    kill_all(broken, words)
    for name in "two", "four":
        (tests / name).write_text("#!/bin/sh\n", encoding="utf-8")
    assert place.gpu(*words, "tests,overhead").returncode == 0, load(folder)
    result = place.gpu("--output", folder.with_name("wrong"), "--only", "gemm", *EVERYTHING,
                       PEERS_TEST_BREAK="dgemm")
    assert result.returncode == 1 and "a wrong result" in result.stderr, result


def kill_all(place, words):
    """Programs started by gpu.py do not outlive it, even if it is killed."""
    process = subprocess.Popen(place.command(*words, "tests"), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL,
                               env={**os.environ, "FAKE_CUDA_DEVICES": "1"})
    place.wait(lambda: b"1000" in sum(place.processes(), []), "a program of a program")
    process.kill()
    process.wait()
    place.wait(lambda: not place.processes(), "their end")


def check_time(place, folder):
    """Rows without time or memory are left out and do not fail; rows cut short are made again."""
    result = place.gpu("--output", folder, "--only", "cholesky", "--budget", 1)
    assert result.returncode == 0, result
    assert load(folder)["omitted"] and not load(folder)["rows"], load(folder)
    result = place.gpu("--output", folder, "--only", "gemm", "--budget", 9000, "--gemm-n",
                       1 << 20, "--precisions", "d")
    assert "GiB of the host's memory" in load(folder)["omitted"][-1]["why"], load(folder)
    slow = folder.with_name("slow.sh")
    slow.write_text(f"#!/bin/sh\n'{place.folder}/overhead_cuda' \"$@\"\nsleep 1000\n",
                    encoding="utf-8")
    slow.chmod(0o755)
    words = ["--output", folder.with_name("slow"), "--only", "overhead"]
    slowly, record, budget = Place(folder.with_name("slowly"), overhead_cuda=slow), {}, 3
    while not record.get("rows"):  # until the program got that far in time
        budget *= 2
        result = slowly.gpu(*words, "--budget", budget)
        record = load(folder.with_name("slow"))
    assert result.returncode == 0 and {row["cut"] for row in record["rows"]} == {True}, result
    assert record["rows"][0]["key"] == record["omitted"][0]["what"], record
    assert place.gpu(*words, *EVERYTHING).returncode == 0
    record = load(folder.with_name("slow"))
    assert len(record["rows"]) == 12 and not record["omitted"], record
    assert not any(row["cut"] for row in record["rows"]), record


def check_absence(place, folder):
    result = place.gpu("--output", folder, FAKE_CUDA_DEVICES="0")
    assert result.returncode == SKIPPED and "1 GPU is wanted" in result.stderr, result
    assert not folder.exists()
    assert place.gpu("--only", "nothing").returncode == 2
    assert place.gpu("--duet", "/nowhere/duet").returncode == 2
    result = place.gpu("--libraries", "libnone.so.7", "--output", folder)
    assert result.returncode == 2 and not folder.exists(), result
    assert "libnone.so.7 is nowhere" in result.stderr and len(result.stderr.splitlines()) == 1


def check_libraries(folder):
    """CUDA's libraries as Python's packages have them."""
    places = [folder / "x-packages/nvidia" / name / "lib" for name in ("cu13", "cusparse")]
    for path in places:
        path.mkdir(parents=True)
    (places[0] / "libnone.so.7").touch()
    sys.path.append(str(folder / "x-packages"))
    assert gpu_session.find_libraries(["libnone.so.7", "libc.so.6"]) == [str(path) for path in
                                                                        places]
    os.environ["LD_LIBRARY_PATH"] = str(places[0])
    assert not gpu_session.find_libraries(["libnone.so.7"])
    del os.environ["LD_LIBRARY_PATH"]


if not all((BUILD / "tests" / f"{name}_fake").exists() for name in PEERS) or not FAKE.exists():
    skip("the fake GPU is built where CUDA and BLAS are")
if "TSAN_OPTIONS" in os.environ:
    skip("what runs here is tested under sanitizers by itself")
with tempfile.TemporaryDirectory() as temporary:
    top = pathlib.Path(temporary).resolve()
    fakes = Place(top / "programs")
    check_plan(fakes, top)
    check_everything(fakes, top / "all")
    check_going_on(fakes, top / "all")
    check_kills(fakes, top / "kills")
    check_failures(fakes, top / "failed")
    check_time(fakes, top / "late")
    check_absence(fakes, top / "none")
    check_libraries(top)
