# SPDX-License-Identifier: Apache-2.0
"""Every C and C++ file is as clang-format would write it; scripts/format makes it so."""

import concurrent.futures
import os
import re
import shutil
import subprocess

import repository

if not shutil.which("clang-format"):
    repository.skip("no clang-format")


def check(paths):
    """The places, one a file, where clang-format would write something else."""
    result = subprocess.run(["clang-format", "--dry-run", "--Werror", *map(str, paths)],
                            cwd=repository.ROOT, capture_output=True, text=True, check=False)
    places = dict(re.findall(r"^(\S+?):(\d+):\d+: error: ", result.stderr, re.MULTILINE)[::-1])
    problems = [f"{path}:{line}: not formatted (scripts/format {path})"
                for path, line in places.items()]
    return problems or ([result.stderr] if result.returncode else [])


checked = repository.sources()
cores = os.cpu_count()
with concurrent.futures.ThreadPoolExecutor(cores) as pool:
    found = pool.map(check, [checked[core::cores] for core in range(cores)])
    repository.finish(sorted(problem for problems in found for problem in problems),
                      f"{len(checked)} files are formatted")
