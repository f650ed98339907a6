# SPDX-License-Identifier: Apache-2.0
"""The peers of GPU runs with CUDA's functions computed on the host: each mode prints what it
should, and notices a wrong result, a failing call and a missing GPU. The same for what a task
costs, with the fake CUDA. No time is looked at."""

import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
PEERS = BUILD / "tests" / "cuda_peers_fake"
OVERHEAD = BUILD / "tests" / "cuda_overhead_fake"
SKIPPED = 77

# mode: options, lines, keys
MODES = {
    "device": ([], 1, {"device", "cublas", "major", "total_bytes", "free_bytes"}),
    "gemm": (["--n", 65], 2, {"precision", "n", "unit", "verified"}),
    "gemm-xt": (["--n", 64, "--block", 16], 1, {"tile", "unit", "verified"}),
    "potrf": (["--n", 65], 2, {"unit", "verified"}),
    "getrf": (["--n", 65], 2, {"unit", "verified"}),
    "axpy": (["--n", 1000], 2, {"unit", "verified"}),
    "jacobi2d": (["--n", 64], 2, {"unit", "verified"}),
    # three for page-locked memory, two for each of three other kinds
    "copies": (["--n", 65536], 9, {"unit", "memory", "direction", "bytes", "verified"}),
    "costs": ([], 11, {"unit", "call"}),
}
# what is spoilt: the mode that has to notice
BROKEN = {"dgemm": "gemm", "dpotrf": "potrf", "dgetrf": "getrf", "daxpy": "axpy",
          "jacobi2d": "jacobi2d", "copy": "copies"}


def execute(program, *arguments, **variables):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, **variables})


def lines_of(result):
    assert result.returncode == 0, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def check_modes():
    for mode, (arguments, count, keys) in MODES.items():
        for precision in "d", "s":
            lines = lines_of(execute(PEERS, mode, *arguments, "--repeats", 2, "--precision",
                                     precision))
            assert len(lines) == count, (mode, lines)
            for line in lines:
                assert line["mode"] == mode and keys <= set(line), (mode, line)
                assert line.get("verified", True) is True, line
                assert line.get("precision", precision) == precision, line
                values = line.get("values", [1, 1] if mode == "device" else [])
                assert len(values) == 2 and all(value > 0 for value in values), line
            if mode in ("gemm", "potrf", "getrf", "axpy", "jacobi2d"):
                assert [line["copies"] for line in lines] == [False, True], lines


def check_broken():
    for what, mode in BROKEN.items():
        result = execute(PEERS, mode, *MODES[mode][0], PEERS_TEST_BREAK=what)
        assert result.returncode == 1, (what, result)
        assert '"verified": false' in result.stdout, (what, result)
        assert result.stderr.startswith("cuda_peers: "), (what, result)
    result = execute(PEERS, "gemm", PEERS_TEST_BREAK="malloc")
    assert result.returncode == 1 and "cudaMalloc(" in result.stderr, result
    assert "out of memory (cudaErrorMemoryAllocation)" in result.stderr, result
    for what, text in (("count", "cudaErrorNoDevice"), ("memory", "GiB are free"),
                       ("driver", "cudaErrorInsufficientDriver); `duet info` says more")):
        result = execute(PEERS, "gemm", PEERS_TEST_BREAK=what)
        assert result.returncode == SKIPPED and text in result.stderr, result


def check_limits():
    lines = lines_of(execute(PEERS, "gemm", "--n", 32, "--repeats", 9, "--limit", 0))
    assert [len(line["values"]) for line in lines] == [1, 1], lines


def check_usage():
    for arguments in ([], ["nothing"], ["gemm", "--n", "0"], ["gemm", "--n", "1x"],
                      ["gemm", "--repeats", "65"], ["gemm", "--precision", "q"], ["gemm", "more"]):
        result = execute(PEERS, *arguments)
        assert result.returncode == 2 and result.stderr, (arguments, result)


def check_overhead():
    for benchmark in "nothing", "memset", "chain":
        line, = lines_of(execute(OVERHEAD, benchmark, 50, 2, FAKE_CUDA_DEVICES="1"))
        assert line["benchmark"] == benchmark and line["tasks"] == 50, line
        assert len(line["values"]) == 2 and min(line["values"]) > 0, line
        assert line["verified"] is (None if benchmark == "nothing" else True), line
    result = execute(OVERHEAD, "chain", FAKE_CUDA_DEVICES="0")
    assert result.returncode == SKIPPED and "no GPU" in result.stderr, result
    for number, text in (35, "cudaErrorInsufficientDriver"), (100, "cudaErrorNoDevice"):
        result = execute(OVERHEAD, "chain", FAKE_CUDA_DEVICES="1",
                         FAKE_CUDA_FAIL=f"cudaGetDeviceCount@1={number}")
        assert result.returncode == SKIPPED and text in result.stderr, (number, result)
    result = execute(OVERHEAD, "chain", 50, FAKE_CUDA_DEVICES="1",
                     FAKE_CUDA_FAIL="cudaMemsetAsync@5=2")
    assert result.returncode == 1 and "cudaMemsetAsync" in result.stderr, result
    for arguments in [], ["chains"], ["chain", 0], ["chain", 1, 0]:
        assert execute(OVERHEAD, *arguments).returncode == 2, arguments


def check_real_programs():
    """Those that a GPU would run: without one they say so."""
    for name, arguments in ("cuda_peers", ["device"]), ("cuda_overhead", ["chain", 10]):
        result = execute(BUILD / "bench" / name, *arguments)
        assert result.returncode in (0, SKIPPED), result
        assert result.returncode == 0 or "skipped" in result.stderr, result


if not PEERS.exists() or not OVERHEAD.exists():
    print("skipped: the peers are built where CUDA and BLAS are")
    sys.exit(SKIPPED)
check_modes()
check_broken()
check_limits()
check_usage()
check_overhead()
check_real_programs()
