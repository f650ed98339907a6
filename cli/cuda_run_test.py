# SPDX-License-Identifier: Apache-2.0
"""`duet run` on GPUs with CUDA, which the fake stands for: every workload verified, and what the
user reads when CUDA fails."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from testing import run_tests, told

SKIPPED = 77
DUET = os.environ.get("DUET_FAKE_CUDA", "")

# Arguments of runs that are small, and need more memory than the GPUs are given.
WORKLOADS = [
    "cholesky --n 300 --tile 64",
    "cholesky --n 300 --tile 64 --param potrf=any --param layout=lapack",
    "cholesky --n 300 --tile 96 --param block=32",
    "lu --n 300 --tile 64",
    "lu --n 300 --tile 64 --param getrf=any",
    "lu-pivot --n 300 --tile 64 --param layout=lapack",
    "gemm --n 200 --tile 64",
    "jacobi2d --n 150 --tile 48 --param iterations=3",
    "saxpy --n 50000 --tile 6000 --param iterations=3",
]
MEMORY = ["--gpu-memory", "400kB"]
CHOLESKY = "cholesky --n 300 --tile 64 --cpus 1 --gpus 1 --set-arch --verify --reps 2".split()
OUT_OF_MEMORY, ILLEGAL_ADDRESS, ECC, UNKNOWN = 2, 700, 214, 999  # of cudaError_t


def duet(arguments, **environment):
    """Runs it with FAKE_CUDA_... of these names; the result, with the fake's report as a dict."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "report")
        settings = {"DEVICES": "2", "REPORT": str(path), **environment}
        result = subprocess.run(
            [DUET, "run", *arguments], capture_output=True, text=True, check=False,
            env={**os.environ, **{"FAKE_CUDA_" + name: text for name, text in settings.items()}})
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    result.fake = {name: int(number) for name, number in map(str.split, lines)}
    result.said = told(result.stderr)
    return result


def good(arguments, **environment):
    """The run's object, and the result, of runs that end well."""
    result = duet([*arguments, "--json"], **environment)
    assert result.returncode == 0, (arguments, environment, result)
    (run,) = json.loads(result.stdout)["runs"]
    assert run["verification"]["passed"], (arguments, run)
    assert (result.fake["violations"], result.fake["leaks"]) == (0, 0), result.fake
    return run, result


def bad(fragments, arguments, status, **environment):
    """It ends with one line that has all of these in it, and leaves nothing behind."""
    result = duet(arguments, **environment)
    assert result.returncode == status and not result.stdout, (arguments, environment, result)
    assert len(result.said) == 1, result.stderr
    for fragment in fragments:
        assert fragment in result.said[0], (fragment, result.said)
    assert (result.fake["violations"], result.fake["leaks"]) == (0, 0), result.fake
    return result


def test_workloads():
    """In double precision on one GPU or in single on two: right, on the GPUs, and by copies of
    page-locked memory only."""
    for number, text in enumerate(WORKLOADS):
        gpus, precision = ["1d", "2s"][number % 2]
        run, result = good([*text.split(), *MEMORY, "--precision", precision, "--cpus", "1",
                            "--gpus", gpus, "--set-arch", "--reps", "2", "--verify"])
        assert (run["cpus"], run["gpus"], run["precision"]) == (1, int(gpus), precision), run
        assert run["bytes"]["host_to_device"] > 0, run
        assert not result.said, result.said
        assert min(result.fake[name] for name in ("kernels", "in", "out")) > 0, result.fake
        assert result.fake["pageable_in"] == result.fake["pageable_out"] == 0, (text, result.fake)


def test_policies():
    """Tasks that may run anywhere, by policies that push, steal, plan, and choose data first."""
    arguments = "cholesky --n 300 --tile 64 --cpus 2 --gpus 2 --verify --reps 1 --json"
    result = duet([*arguments.split(), *MEMORY, "--policy", "ws,dmdas,cp,darts"])
    assert result.returncode == 0, result
    runs = json.loads(result.stdout)["runs"]
    assert len(runs) == 4 and all(run["verification"]["passed"] for run in runs), runs
    assert (result.fake["violations"], result.fake["leaks"]) == (0, 0), result.fake


def test_streams():
    """Several kernels at once, and a window of another size."""
    good([*CHOLESKY, *MEMORY, "--gpu-streams", "4", "--gpu-window", "6"])


def test_graphs():
    """A graph is a CUDA graph where the GPU alone computes, one kernel at a time."""
    run = "jacobi2d --n 150 --tile 48 --param iterations=9 --param submit=graph --reps 1 --verify"
    for more, graphs in (("", True), ("--no-cuda-graphs", False), ("--gpu-streams 2", False),
                         ("--cpus 1", False)):
        _, result = good([*run.split(), "--gpus", "1", "--cpus", "0", *more.split()])
        assert (result.fake["cudaGraphLaunch"] > 0) == graphs, (more, result.fake)


def test_no_peers():
    _, result = good(["gemm", "--n", "200", "--tile", "64", "--cpus", "1", "--gpus", "2", "--reps",
                      "1", "--gpu-window", "1", "--set-arch", "--verify", *MEMORY], PEERS="0")
    assert result.fake["direct"] == 0, result.fake


def test_no_pin():
    """Without page-locked memory of the application's everything goes through small buffers."""
    run, result = good([*CHOLESKY, "--pin", "none"])
    assert result.fake["cudaHostRegister"] == 0 and run["bytes"]["host_to_device"] > 0
    assert not result.said, result.said
    good(CHOLESKY, REGISTERED="1")


def test_absent():
    """More GPUs than there are is the user's mistake; none is no hindrance."""
    bad(["1 GPU is wanted"], CHOLESKY, 2, DEVICES="0")
    result = duet("cholesky --n 300 --tile 64 --verify".split(), DEVICES="0")
    assert result.returncode == 0 and not result.said, result


def test_refused():
    """What CUDA refuses at once is told with the name of the call, and of the kernel."""
    bad(["GPU 0", "cudaMalloc: out of memory (cudaErrorMemoryAllocation)"], CHOLESKY, 1,
        FAIL=f"cudaMalloc@1={OUT_OF_MEMORY}")
    bad(["GPU 0", "cudaStreamCreateWithFlags"], CHOLESKY, 1,
        FAIL=f"cudaStreamCreateWithFlags@1={UNKNOWN}")
    bad(["dpotrf", "cudaMallocAsync: cuSOLVER needs 1 MiB of the GPU's memory"],
        [*CHOLESKY, "--param", "potrf=any"], 1, FAIL=f"cudaMallocAsync@1={OUT_OF_MEMORY}")


def test_broken():
    """A kernel that touches what it may not breaks the GPU, on which all the rest was to run. Its
    task fails if it is known which one it was; else the GPU is said to be lost."""
    result = duet(CHOLESKY, BREAK=f"0@20={ILLEGAL_ADDRESS}")
    assert result.returncode == 1 and not result.stdout, result
    assert 1 <= len(result.said) <= 2 and "cudaErrorIllegalAddress" in result.stderr, result.stderr
    assert result.said[-1].startswith("duet: the run of ws failed: "), result.stderr


def test_lost():
    """A GPU that dies: the others do its work, and right, unless it held what nobody else had."""
    arguments = "cholesky --n 300 --tile 64 --cpus 1 --gpus 2 --verify --reps 1".split()
    bad(["GPU 0", "cannot be used", "cudaErrorECCUncorrectable"], arguments, 1, BREAK=f"0@1={ECC}")
    for operation in 8, 50:  # which it may not come to, if others take its tasks
        result = duet(arguments, BREAK=f"0@{operation}={ECC}")
        for line in result.said[:1]:
            assert line.startswith("duet: GPU 0 (Fake GPU 0) is lost: "), result.stderr
            assert "cudaErrorECCUncorrectable" in line, result.stderr
        if result.returncode:
            assert result.returncode == 1 and not result.stdout, result
            # a copy from it may be the first to see that it is dead
            assert len(result.said) == 2, result.stderr
            assert "lost" in result.said[1] or "ECC" in result.said[1], result.stderr
        else:
            assert "passed in" in result.stdout and len(result.said) <= 1, result
        assert (result.fake["violations"], result.fake["leaks"]) == (0, 0), result.fake


def test_left_out():
    """Who asks for all GPUs hears why some are not used; the run goes on with the rest."""
    arguments = "gemm --n 200 --tile 64 --verify --reps 1".split()
    _, result = good(arguments, FAIL="cudaGetDeviceCount@1=35,cudaGetDeviceCount@2=35")
    (line,) = result.said
    assert line.startswith("duet: GPUs are left out: the NVIDIA driver is too old"), line
    run, result = good([*arguments, "--cpus", "1"], FAIL="cudaSetDevice@1=46")
    (line,) = result.said
    assert line.startswith("duet: GPUs are left out: GPU 0: "), line
    assert run["gpus"] == 1, run
    result = duet([*arguments, "--gpus", "0"], FAIL="cudaGetDeviceCount@1=35")
    assert result.returncode == 0 and not result.said, result


def test_refused_page_locks():
    """The matrices are page-locked as a whole; what refuses that is said once, tiles or not."""
    arguments = "gemm --n 512 --tile 128 --verify --reps 1".split()
    _, result = good([*arguments, "--pin", "1MiB"])
    (line,) = result.said
    assert "page-locking 2.0 MiB" in line and "--pin" in line, line
    _, result = good([*arguments, "--param", "layout=lapack"], REGISTERED="1000")
    (line,) = result.said
    assert "cudaHostRegister" in line and "duet_pin" not in line, line


def test_tune():
    """The best settings are run on GPUs by processes that nothing before has spoilt for CUDA."""
    environment = {**os.environ, "FAKE_CUDA_DEVICES": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for words in ("calibrate cholesky --n 256 --tile 64 --cpus 1 --gpus 1 --budget 0.2s "
                      "--no-costs --no-copies --out m.json",
                      "tune cholesky --platform ./m.json --n 256 --tile 64 --policy heft "
                      "--gpus 1 --budget 0.1s --verify 1"):
            result = subprocess.run([DUET, *words.split()], capture_output=True, text=True,
                                    check=False, cwd=folder, env=environment)
            assert result.returncode == 0, result
    assert "medians of 3 runs" in result.stdout, result


if not os.path.exists(DUET):
    print("DUET_FAKE_CUDA names no command: there is no CUDA toolkit, or no BLAS")
    sys.exit(SKIPPED)
run_tests(globals())
