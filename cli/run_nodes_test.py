# SPDX-License-Identifier: Apache-2.0
"""`mpirun ... duet run --nodes`: workloads on matrices are right on several processes, whatever
their grid. What happens when something fails is in nodes/mpi_test.py."""

import os
import re
import shutil
import subprocess
import sys

DUET = os.path.abspath(os.environ.get("DUET") or sys.argv[1])
# all workloads on several nodes in one process: workloads.nodes
RUNS = [("2x2", "cholesky --n 200 --tile 32"),
        ("1x2", "lu --n 200 --tile 48 --precision s --param layout=lapack"),
        ("2x1", "qr --n 200 --tile 32 --emulate free --gpus 1"),
        ("1x3", "gemm --n 150 --tile 48 --param m=60"),
        ("2", "jacobi2d --n 100 --tile 24 --param iterations=7")]

if not shutil.which("mpirun"):
    print("there is no mpirun here")
    sys.exit(77)
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")


def mpirun(ranks, *words):
    return subprocess.run(["mpirun", "-n", str(ranks), *words], capture_output=True, text=True,
                          check=False)


for nodes, words in RUNS:
    rows, cols = (*map(int, nodes.split("x")), 1)[:2]
    result = mpirun(rows * cols, DUET, "run", *words.split(), "--nodes", nodes, "--cpus", "1",
                    "--reps", "2", "--warmup", "0", "--verify", "--quiet")
    if "without MPI" in result.stderr:
        print("this build is without MPI, and says so")
        sys.exit(77)
    if "without BLAS" in result.stderr:
        continue
    assert result.returncode == 0, (nodes, words, result)
    assert len(re.findall(r"passed in all 2 runs$", result.stdout, re.M)) == 1, (words, result)

refused = mpirun(2, DUET, "run", "fibonacci", "--n", "20", "--nodes", "2")
assert refused.returncode == 2 and not refused.stdout, refused
assert refused.stderr.count("fibonacci has no data that could be dealt out: --nodes 1") == 1
