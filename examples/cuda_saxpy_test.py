# SPDX-License-Identifier: Apache-2.0
"""The example with a CUDA kernel of its own: on the cores, on emulated GPUs, on all there is."""

import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
PROGRAM = BUILD / "examples" / "cuda_saxpy"


def run(*arguments):
    environment = {name: value for name, value in os.environ.items()
                   if not re.match(r"DUET_[A-Z]", name)}
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True,
                          check=False)


if not PROGRAM.exists():
    print("skipped: built without CUDA")
    sys.exit(77)
for options in ([], ["--duet-gpus=0"],
                ["--duet-emulate=free", "--duet-cpus=0", "--duet-gpus=2"],
                ["--duet-emulate=free", "--duet-gpus=1", "--duet-gpu-memory=1MiB"]):
    result = run(*options)
    assert result.returncode == 0, (options, result)
    assert result.stdout == "1048576 elements are right\n", (options, result.stdout)
result = run("--duet-gpus=900")
assert result.returncode == 2 and "900 GPUs" in result.stderr, result
