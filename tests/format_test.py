# SPDX-License-Identifier: Apache-2.0
"""Every C and C++ file is as clang-format would write it; scripts/format makes it so."""

import shutil
import subprocess

import repository

if not shutil.which("clang-format"):
    repository.skip("no clang-format")

problems = []
checked = repository.sources()
for path in checked:
    result = subprocess.run(["clang-format", str(path)], cwd=repository.ROOT,
                            capture_output=True, text=True, check=True)
    if result.stdout != repository.read(path):
        before = repository.read(path).splitlines()
        after = result.stdout.splitlines()
        line = next((n for n, (old, new) in enumerate(zip(before, after), 1) if old != new),
                    min(len(before), len(after)))
        problems.append(f"{path}:{line}: not formatted (scripts/format {path})")
repository.finish(problems, f"{len(checked)} files are formatted")
