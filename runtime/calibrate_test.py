# SPDX-License-Identifier: Apache-2.0
"""Processes that keep their kernel times in one file (DUET_CALIBRATE), together or killed."""

import fcntl
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

import repository

sys.path.append(str(repository.ROOT / "cli"))
from testing import has_open, until

EXAMPLES = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve() / "examples"
QR = [EXAMPLES / "tiled_qr", "256", "64"]
TASKS = {"dgeqrt": 4, "dgemqrt": 6, "dtpqrt": 6, "dtpmqrt": 14}  # of four by four tiles
PROCESSES = 4


def start(folder, *arguments, **more):
    environment = {name: value for name, value in os.environ.items() if name[:5] != "DUET_"}
    return subprocess.Popen([*QR, *arguments], cwd=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**environment, "DUET_CALIBRATE": "mine.json"}, **more)


def run(folder, *arguments, **more):
    with start(folder, *arguments, **more) as process:
        out, said = process.communicate()
    return process.returncode, out, said


def counted(folder):
    """How many executions of each kernel the file knows of."""
    platform = json.loads((folder / "mine.json").read_text(encoding="utf-8"))
    return {curve["kernel"]: sum(point["samples"] + point.get("rejected", 0)
                                 for point in curve["points"]) for curve in platform["curves"]}


def times(runs):
    return {kernel: runs * count for kernel, count in TASKS.items()}


def waits(folder, process):
    """Whether the process has the lock's file open, which somebody else has locked."""
    return has_open(process, folder / "mine.json.lock")


def check_together(folder):
    """Processes that are closed at the same moment: nothing is lost."""
    with open(folder / "mine.json.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        processes = [start(folder) for _ in range(PROCESSES)]
        for process in processes:
            until(lambda p=process: waits(folder, p))
        assert not (folder / "mine.json").exists()
    for process in processes:
        out, said = process.communicate()
        assert process.returncode == 0 and "factorised" in out and not said, said
    assert counted(folder) == times(PROCESSES), counted(folder)
    assert [file.name for file in folder.iterdir()] == ["mine.json"], list(folder.iterdir())


def check_killed(folder):
    """One that is killed while it has the file locked, or waits for that, changes nothing."""
    before = (folder / "mine.json").read_bytes()
    with open(folder / "mine.json.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with start(folder) as process:
            until(lambda: waits(folder, process))
            process.send_signal(signal.SIGKILL)
            process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert (folder / "mine.json").read_bytes() == before


def check_full(folder):
    """Where it cannot be written the program still has its result, and its status."""
    before = (folder / "mine.json").read_bytes()

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    status, out, said = run(folder, preexec_fn=full)
    assert status == 0 and "factorised" in out, (status, said)
    assert said.startswith("duet: no kernel times are kept: ") and said.count("\n") == 1, said
    assert (folder / "mine.json").read_bytes() == before
    status, _, said = run(folder)
    assert status == 0 and not said and counted(folder) == times(PROCESSES + 1), said


def check_use(folder):
    """The file is a platform, of which the program is simulated; not with the setting, too."""
    command = [os.environ["DUET"], "simulate", "--platform", "./mine.json", "--", *QR]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "DUET_CALIBRATE": "mine.json"})
    assert done.returncode == 0 and "tiled_qr, 30 tasks" in done.stdout, done
    assert counted(folder) == times(PROCESSES + 1)
    status, _, said = run(folder, "--duet-simulate=mine.json")
    assert status != 0 and "nothing is measured in it" in said, (status, said)
    status, _, said = run(folder, "--duet-calibrate=")
    assert status == 0 and counted(folder) == times(PROCESSES + 1), said


if not QR[0].exists():
    repository.skip("no tiled_qr, which needs LAPACK")
with tempfile.TemporaryDirectory() as place:
    for check in (check_together, check_killed, check_full, check_use):
        check(pathlib.Path(place).resolve())
print(f"{PROCESSES} processes at once, and those that were ended, leave a whole file")
