# SPDX-License-Identifier: Apache-2.0
"""`duet run`, `duet info` and `duet calibrate` on devices of OpenCL: those of pocl, which compiles
CLBlast's kernels for half a minute when they are first called, and keeps them in the build."""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
OPENCL = ["--devices", "opencl"]

# Arguments of runs that are small, and need more memory than the devices are given.
RUNS = [
    "gemm --n 200 --tile 64 --gpus 1",
    "gemm --n 200 --tile 64 --gpus 2 --precision s --gpu-streams 2",
    "cholesky --n 300 --tile 64 --gpus 2 --policy heft",
    "cholesky --n 300 --tile 64 --gpus 1 --param layout=lapack --no-peer",
    "lu --n 300 --tile 64 --gpus 1",
    "saxpy --n 50000 --tile 6000 --param iterations=3 --gpus 2",
]
# What has no kernels for OpenCL's devices is computed by CPUs.
ON_CPUS = ["jacobi2d --n 200 --tile 48 --param iterations=6 --gpus 1"]


def duet(*arguments, **environment):
    return subprocess.run([os.environ["DUET"], *arguments], capture_output=True, text=True,
                          check=False, env={**os.environ, **environment})


def run(text, *more):
    """The object of a run, whose result must be right."""
    result = duet("run", *text.split(), *OPENCL, "--cpus", "1", "--gpu-memory", "400kB",
                  "--set-arch", "--verify", "--reps", "2", "--json", *more)
    assert result.returncode == 0, (text, result)
    (report,) = json.loads(result.stdout)["runs"]
    assert report["verification"]["passed"], (text, report)
    return report


def test_runs():
    for text in RUNS:
        assert run(text)["bytes"]["host_to_device"] > 0, text
    for text in ON_CPUS:
        assert run(text)["bytes"]["host_to_device"] == 0, text


def test_calibrate():
    """A simulation of the machine that was calibrated knows what its devices take."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "opencl.json")
        result = duet("calibrate", "gemm", *OPENCL, "--gpus", "1", "--cpus", "1", "--n", "256",
                      "--tile", "64", "--reps", "1", "--no-costs", "--no-copies", "--out", path)
        assert result.returncode == 0, result
        result = duet("simulate", "gemm", "--platform", path, "--n", "256", "--tile", "64",
                      "--set-arch", "--json")
    assert result.returncode == 0, result
    (report,) = json.loads(result.stdout)["runs"]
    assert report["gpus"] == 1 and report["bytes"]["host_to_device"] > 0, report


def test_info(described):
    """Both of pocl's devices are there; a run takes them where it was asked for."""
    (opencl,) = [one for one in described["backends"] if one["name"] == "opencl"]
    assert opencl["kind"] == "devices" and len(opencl["devices"]) == opencl["count"], opencl
    machine = json.loads(duet("info", *OPENCL, "--json").stdout)["machine"]
    workers = [worker for worker in machine["workers"] if worker["programmed_by"] == "opencl"]
    assert len(workers) == opencl["count"], machine
    assert all(worker["backend"] == "opencl" for worker in workers), workers
    assert {kernel["name"] for kernel in described["kernels"] if kernel["opencl"]} >= {
        "gemm", "syrk", "trsm", "axpy"}, described["kernels"]
    assert not [worker for worker in described["machine"]["workers"]
                if worker["programmed_by"] == "opencl"], described["machine"]


def test_mistakes():
    for arguments, text in ((["--devices", "abacus"], "name cuda or opencl"),
                            ([*OPENCL, "--emulate", "free"], "exclude each other"),
                            ([*OPENCL, "--gpus", "1000"], "1000 GPUs are wanted")):
        result = duet("run", "gemm", *arguments)
        assert result.returncode == 2 and text in result.stderr, (arguments, result)


facts = json.loads(duet("info", "--json").stdout)
if not [one for one in facts["backends"] if one["name"] == "opencl" and one["count"]]:
    print("skipped: no device of OpenCL")
    sys.exit(SKIPPED)
test_info(facts)
test_mistakes()
if not facts["build"]["opencl"]["libraries"]:
    print("skipped: no CLBlast")
    sys.exit(SKIPPED)
test_runs()
test_calibrate()
print(f"{len(RUNS)} runs on OpenCL's devices are right")
