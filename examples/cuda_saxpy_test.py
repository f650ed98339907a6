# SPDX-License-Identifier: Apache-2.0
"""The example with a CUDA kernel of its own: on the cores, on emulated GPUs, on all there is."""

from testing import need, run

need("cuda_saxpy", why="built without CUDA")
for options in ([], ["--duet-gpus=0"],
                ["--duet-emulate=free", "--duet-cpus=0", "--duet-gpus=2"],
                ["--duet-emulate=free", "--duet-gpus=1", "--duet-gpu-memory=1MiB"]):
    result = run("cuda_saxpy", *options)
    assert result.returncode == 0, (options, result)
    assert result.stdout == "1048576 elements are right\n", (options, result.stdout)
result = run("cuda_saxpy", "--duet-gpus=900")
assert result.returncode == 2 and "900 GPUs" in result.stderr, result
