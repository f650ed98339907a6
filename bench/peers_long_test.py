# SPDX-License-Identifier: Apache-2.0
"""The libraries with which duet's runs are compared: OpenBLAS's, and those of a GPU with CUDA's
functions computed on the host. Each operation prints its lines, and notices a wrong result, a
failing call and a missing GPU. Likewise the cost of a task on a GPU, with the fake CUDA. No time is
looked at."""

import json
import os
import subprocess

from repository import BUILD, SKIPPED, skip

LAPACK = BUILD / "bench" / "lapack"
PEERS = BUILD / "tests" / "cuda_peers_fake"
OVERHEAD = BUILD / "tests" / "overhead_cuda_fake"

# program, operation: options, whether the lines have copies in them
CASES = {(LAPACK, "cholesky"): (["--n", 65], [True]),
         (LAPACK, "lu"): (["--n", 65, "--threads", 2], [True]),
         (LAPACK, "gemm"): (["--n", 65], [True]),
         (PEERS, "gemm"): (["--n", 65], [False, True]),
         (PEERS, "gemm-xt"): (["--n", 64, "--block", 16], [True]),
         (PEERS, "cholesky"): (["--n", 65], [False, True]),
         (PEERS, "lu"): (["--n", 65], [False, True]),
         (PEERS, "saxpy"): (["--n", 1000], [False, True])}
# what is spoilt: operations that notice it
BROKEN = {"dgemm": ["gemm", "gemm-xt"], "dpotrf": ["cholesky"], "dgetrf": ["lu"],
          "daxpy": ["saxpy"], "copy": ["gemm", "cholesky", "lu", "saxpy"]}


def execute(program, *arguments, **variables):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600, check=False, env={**os.environ, **variables})


def lines_of(result):
    assert result.returncode == 0, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def check_operations():
    for (program, operation), (arguments, copies) in CASES.items():
        for precision in "d", "s":
            lines = lines_of(execute(program, operation, *arguments, "--repeats", 2, "--precision",
                                     precision))
            assert [line["copies"] for line in lines] == copies, lines
            for line in lines:
                assert line["workload"] == operation and line["precision"] == precision, line
                assert line["verified"] is True and line["n"] == arguments[1], line
                assert len(line["values"]) == 2 and min(line["values"]) > 0, line


def check_orders():
    """Several orders in one process, the largest first; each result is looked at."""
    for operation in "gemm", "cholesky", "lu":
        lines = lines_of(execute(PEERS, operation, "--n", "65,33,20", "--repeats", 1))
        assert [line["n"] for line in lines] == [65, 65, 33, 33, 20, 20], lines
        assert all(line["verified"] for line in lines), lines
    result = execute(PEERS, "lu", "--n", "65,20", PEERS_TEST_BREAK="dgetrf")
    assert result.returncode == 1 and '"n": 65' in result.stdout, result


def check_broken():
    for what, operations in BROKEN.items():
        for operation in operations:
            result = execute(PEERS, operation, *CASES[PEERS, operation][0], PEERS_TEST_BREAK=what)
            assert result.returncode == 1, (what, result)
            assert '"verified": false' in result.stdout, (what, result)
            assert result.stderr == "cuda_peers_fake: a wrong result\n", (what, result)
    for what, text in (("malloc", "out of memory (cudaErrorMemoryAllocation)"),
                       ("driver", "cudaErrorInsufficientDriver")):
        result = execute(PEERS, "gemm", "--n", 8, PEERS_TEST_BREAK=what)
        assert result.returncode == SKIPPED and text in result.stderr, result


def check_limits():
    lines = lines_of(execute(PEERS, "gemm", "--n", 32, "--repeats", 9, "--limit", 0))
    assert [len(line["values"]) for line in lines] == [1, 1], lines


def check_usage():
    for arguments in ([], ["nothing", "--n", "8"], ["gemm"], ["gemm", "--n", "0"],
                      ["gemm", "--n", "1x"], ["gemm", "--n", "8,9"],
                      ["gemm", "--n", "8", "--repeats", "0"],
                      ["gemm", "--n", "8", "--precision", "q"], ["gemm", "--n", "8", "more"]):
        result = execute(PEERS, *arguments)
        assert result.returncode == 2 and "Usage" in result.stderr, (arguments, result)


def check_overhead():
    for benchmark in "independent", "chain", "cholesky":
        lines = lines_of(execute(OVERHEAD, benchmark, 1, 2, 6, FAKE_CUDA_DEVICES="1"))
        assert [line["benchmark"] for line in lines] == 2 * [benchmark], lines
        assert min(line["value"] for line in lines) > 0, lines
    result = execute(OVERHEAD, "chain", FAKE_CUDA_DEVICES="0")
    assert result.returncode == 1 and "1 GPU is wanted" in result.stderr, result


def check_real_programs():
    """Programs for a GPU say so without one."""
    result = execute(BUILD / "bench" / "cuda_peers", "gemm", "--n", 64)
    assert result.returncode in (0, SKIPPED), result
    assert result.returncode == 0 or "skipped" in result.stderr, result
    result = execute(BUILD / "bench" / "overhead_cuda", "chain", 1, 1, 10)
    assert result.returncode == 0 or "GPU" in result.stderr, result


if not PEERS.exists() or not OVERHEAD.exists():
    skip("the peers are built where CUDA and BLAS are")
check_operations()
check_orders()
check_broken()
check_limits()
check_usage()
check_overhead()
check_real_programs()
