# SPDX-License-Identifier: Apache-2.0
"""The tiled QR factorisation: verified on CPUs and on emulated GPUs with memory for a tenth of the
data, simulated in the same order, and what it says of sizes that it cannot take."""

import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
PROGRAM = BUILD / "examples" / "tiled_qr"
TILES = 8
TASKS = sum(1 + 2 * k + k * k for k in range(TILES))  # of each k: geqrt, gemqrt and tpqrt, tpmqrt


def run(*arguments):
    environment = {name: value for name, value in os.environ.items()
                   if not re.match(r"DUET_[A-Z]", name)}
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True,
                          check=False)


if not PROGRAM.exists():
    print("skipped: no example program")
    sys.exit(77)
for options in (["--duet-cpus=2", "--duet-policy=heft"],
                ["--duet-emulate=free", "--duet-cpus=1", "--duet-gpus=2",
                 f"--duet-gpu-memory={512 * 512 * 8 // 10}"]):
    result = run("512", "64", "--duet-no-bind", "--duet-report", *options)
    assert result.returncode == 0, result
    found = re.search(r"= (\S+)$", result.stdout, re.M)
    assert found and float(found[1]) < 1e-12, result.stdout
    assert re.search(rf"\b{TASKS} tasks", result.stderr), result.stderr
for arguments, fragment in ((["100", "64"], "whole number"), (["0"], "whole number")):
    result = run(*arguments)
    assert result.returncode == 2 and fragment in result.stderr, result
result = run("512", "64", "--duet-simulate=idgraf", "--duet-gpus=2")
if "without SimGrid" in result.stderr:
    print("skipped: built without SimGrid")
    sys.exit(77)
assert result.returncode == 0, result
assert result.stdout == run("512", "64", "--duet-simulate=idgraf", "--duet-gpus=2").stdout
