# SPDX-License-Identifier: Apache-2.0
"""The example with an OpenCL kernel of its own: on the cores, and on OpenCL's devices alone."""

import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
PROGRAM = BUILD / "examples" / "opencl_scale"
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not re.match(r"DUET_[A-Z]", name)}


def run(*words):
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)


if not PROGRAM.exists():
    print("skipped: built without OpenCL")
    sys.exit(77)
backends = json.loads(run(BUILD / "duet", "info", "--json").stdout)["backends"]
there = [one["count"] for one in backends if one["name"] == "opencl" and one["count"]]
for options in ([], ["--duet-devices=opencl", "--duet-cpus=0"],
                ["--duet-devices=opencl", "--duet-gpus=1", "--duet-gpu-memory=1MiB"]):
    if options and not there:
        print("skipped: no device of OpenCL")
        sys.exit(77)
    result = run(PROGRAM, *options)
    assert result.returncode == 0, (options, result)
    assert result.stdout == "80000 elements are right\n", (options, result.stdout)
