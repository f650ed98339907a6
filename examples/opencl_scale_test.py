# SPDX-License-Identifier: Apache-2.0
"""The example with an OpenCL kernel of its own: on the cores, and on OpenCL's devices alone."""

import json

from repository import skip
from testing import need, run

need("opencl_scale", why="built without OpenCL")
backends = json.loads(run("../duet", "info", "--json").stdout)["backends"]
there = [one["count"] for one in backends if one["name"] == "opencl" and one["count"]]
for options in ([], ["--duet-devices=opencl", "--duet-cpus=0"],
                ["--duet-devices=opencl", "--duet-gpus=1", "--duet-gpu-memory=1MiB"]):
    if options and not there:
        skip("no device of OpenCL")
    result = run("opencl_scale", *options)
    assert result.returncode == 0, (options, result)
    assert result.stdout == "80000 elements are right\n", (options, result.stdout)
