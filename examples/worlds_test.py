# SPDX-License-Identifier: Apache-2.0
"""Simulations run the same tasks as the machine: where one worker of a kind leaves nothing to
chance, each example begins the same tasks in the same order in both worlds, and makes the same
copies.

On one core the program computes (but the Cholesky factorisation, whose kernels are slow). Beside a
GPU, which begins while tasks are still being submitted, the run goes at the platform's pace, made
slow enough for this machine to keep up; the simulation has no costs but kernels and copies then."""

import json
import os
import pathlib
import tempfile

import testing
from repository import ROOT, skip

# program: arguments, memory of the GPU (a tenth of the data), how much slower a platform is. Tasks
# of conjugate gradients are so short that evictions in so little memory depend on microseconds.
PROGRAMS = {
    "fibonacci": (["8"], None, 100),
    "merge_sort": (["100000"], None, 10),
    "dot_product": (["20000", "20"], "32kB", 100),
    "conjugate_gradients": (["8", "4"], None, 100),
    "sparse_lu": (["10", "40"], "128kB", 100),
    "tiled_qr": (["512", "64"], "210kB", 100),
    "tiled_cholesky": ([], "2.9MB", 10),
}
# window: how long a copy takes beside a kernel decides which of two tasks is ready first
GPU = ["--duet-cpus=1", "--duet-gpus=1", "--duet-set-arch", "--duet-policy=eager",
       "--duet-gpu-window=1"]


def run(program, *options):
    """{thread: its kernels in order, or its copies by handle} of a run that ended well."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        result = testing.run(program, *PROGRAMS[program][0], "--duet-no-bind",
                             f"--duet-trace={path}", *options)
        assert result.returncode == 0, result
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    threads = {}
    for event in sorted((event for event in events if event["ph"] == "X"),
                        key=lambda event: event["ts"]):
        number = event["args"]["task" if event["cat"] == "kernel" else "handle"]
        threads.setdefault(event["tid"], []).append(
            (event["cat"], event["name"], number, event["args"]["bytes"]))
    return {thread: what if what[0][0] == "kernel" else sorted(what)
            for thread, what in threads.items()}


def difference(real, simulated):
    """The first one, or None."""
    for thread in sorted(real.keys() | simulated.keys()):
        ours, theirs = real.get(thread, []), simulated.get(thread, [])
        for number in range(max(len(ours), len(theirs))):
            if ours[number:number + 1] != theirs[number:number + 1]:
                return thread, number, ours[number:number + 2], theirs[number:number + 2]
    return None


def check(program, simulated, attempts):
    """A run agrees with the simulation: one of several, as this machine may be busy."""
    for options in attempts:
        real = run(program, *options)
        found = difference(real, simulated)
        if not found and sum(map(len, real.values())) > 10:
            return
    raise AssertionError((program, options, found))


def check_core(program, machine, policies):
    """The application's thread computes when it waits, which the description says."""
    for policy in policies:
        options = ["--duet-cpus=1", "--duet-gpus=0", f"--duet-policy={policy}", "--duet-hold"]
        pace = [f"--duet-emulate={machine}"] if program == "tiled_cholesky" else []
        check(program, run(program, *options, f"--duet-simulate={machine}"),
              [[*options, *pace]])


def check_gpu(program, memory, scale):
    options = GPU + ([f"--duet-gpu-memory={memory}"] if memory else [])
    check(program, run(program, *options, "--duet-simulate=idgraf", "--duet-no-costs"),
          [[*options, "--duet-emulate=idgraf", f"--duet-scale={slower}"]
           for slower in (scale, 3 * scale, 10 * scale, 30 * scale, 100 * scale)])


def main():
    testing.need(*PROGRAMS)
    description = json.loads((ROOT / "platforms" / "idgraf.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        machine = pathlib.Path(folder) / "machine.json"
        machine.write_text(json.dumps({**description, "name": "machine", "first_waits": True}),
                           encoding="utf-8")
        for number, (program, (_, memory, scale)) in enumerate(PROGRAMS.items()):
            check_core(program, machine,
                       [("ws", "heft"), ("eager", "locality-aware")][number % 2])
            if "TSAN_OPTIONS" in os.environ:  # sanitized programs do not keep the pace
                continue
            check_gpu(program, memory, scale)


main()
