# SPDX-License-Identifier: Apache-2.0
"""Processes of mpirun: messages arrive, and whatever one of them does, all end."""

import os
import pathlib
import shutil
import subprocess
import sys

RANKS = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "tests" / "ranks"
if not RANKS.exists() or not shutil.which("mpirun"):
    print("this build is without MPI, or there is no mpirun here")
    sys.exit(77)
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")


def mpirun(count, *words):
    return subprocess.run(["mpirun", "--timeout", "300", "-n", str(count), RANKS, *words],
                          capture_output=True, text=True, check=False)


# The transport alone.
result = mpirun(3, "messages")
assert result.returncode == 0 and not result.stdout + result.stderr, result

# A process that ends in the middle ends all, and it is said which and how.
result = mpirun(3, "exit")
assert result.returncode == 1, result
assert result.stderr.count("duet: node 2: the process ends without duet_close") == 1, result
result = mpirun(3, "abort")
assert result.returncode == 134 and "rank 2" in result.stderr, result
