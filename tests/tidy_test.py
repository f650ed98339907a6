# SPDX-License-Identifier: Apache-2.0
"""clang-tidy finds nothing in C and C++ (it cannot read every toolkit's CUDA). A file that passed
is not looked at again until it, a header, the configuration or its command line changes."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import repository

if not shutil.which("clang-tidy"):
    repository.skip("no clang-tidy")

commands = json.loads((repository.BUILD / "compile_commands.json").read_text(encoding="utf-8"))
passed = repository.BUILD / "tidy"
passed.mkdir(exist_ok=True)

common = hashlib.sha256((repository.ROOT / ".clang-tidy").read_bytes())
for header in repository.sources():
    if header.suffix in {".h", ".hpp"}:
        common.update(str(header).encode())
        common.update((repository.ROOT / header).read_bytes())


def check(command):
    """None if there is nothing to complain about, else what clang-tidy said."""
    path = pathlib.Path(command["file"])
    digest = common.copy()
    digest.update(command["command"].encode())
    digest.update(path.read_bytes())
    stamp = passed / digest.hexdigest()
    if stamp.exists():
        return None
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(repository.BUILD),
         "--extra-arg=-Wno-ignored-optimization-argument", str(path)],
        cwd=repository.ROOT, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        stamp.touch()
        return None
    return result.stdout + (result.stderr if not result.stdout else "")


ours = [command for command in commands
        if pathlib.Path(command["file"]).exists() and not command["file"].endswith(".cu")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = [problem for problem in pool.map(check, ours) if problem]
repository.finish(problems, f"{len(ours)} files are tidy")
