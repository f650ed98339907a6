# SPDX-License-Identifier: Apache-2.0
"""clang-tidy finds nothing in C and C++ (it cannot read every toolkit's CUDA). A file that several
targets compile is looked at once. One that passed is not looked at again until it, what it
includes, the configuration or its command line changes. The analyzer, which follows paths and takes
most of the time, looks at the product: each path of a test is run, and under sanitizers, too."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import repository

if not shutil.which("clang-tidy"):
    repository.skip("no clang-tidy")

# Of a function's states, a third of the default: the rest took more than half of the time, and
# eighteen errors that were put into product files on purpose were found without it, too.
ANALYZER = [f"--extra-arg={word}"
            for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=75000")]

commands = json.loads((repository.BUILD / "compile_commands.json").read_text(encoding="utf-8"))
passed = repository.BUILD / "tidy"
passed.mkdir(exist_ok=True)
# clang-tidy looks at a file once for each of its commands. Nothing that the build has generated;
# long files first, so that no core waits for one at the end.
ours = sorted({command["file"]: command for command in commands
               if pathlib.Path(command["file"]).exists()
               and repository.BUILD not in pathlib.Path(command["file"]).parents
               and not command["file"].endswith(".cu")}.values(),
              key=lambda command: -pathlib.Path(command["file"]).stat().st_size)
(passed / "compile_commands.json").write_text(json.dumps(ours), encoding="utf-8")
configuration = (repository.ROOT / ".clang-tidy").read_bytes()
sources = {str(path): (repository.ROOT / path).read_bytes() for path in repository.sources()}


def included(text, known):
    """Adds to `known` the files of ours that a text includes, and those that they do: all that a
    name may mean."""
    for name in re.findall(rb'^ *# *include *[<"]([^>"]+)[>"]', text, re.MULTILINE):
        for path, content in sources.items():
            if path not in known and ("/" + path).endswith("/" + name.decode()):
                known.add(path)
                included(content, known)
    return known


def check(command):
    """None if there is nothing to complain about, else what clang-tidy said."""
    path = pathlib.Path(command["file"])
    text = path.read_bytes()
    of_tests = "test" in path.stem or "tests" in path.parts
    digest = hashlib.sha256(configuration + command["command"].encode() + text)
    for name in sorted(included(text, set())):
        digest.update(name.encode() + sources[name])
    stamp = passed / digest.hexdigest()
    if stamp.exists():
        return None
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(passed),
         *(["--checks=-clang-analyzer-*"] if of_tests else ANALYZER),
         "--extra-arg=-w", str(path)],  # warnings are gcc's, which has others
        cwd=repository.ROOT, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        stamp.touch()
        return None
    return result.stdout + (result.stderr if not result.stdout else "")


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = [problem for problem in pool.map(check, ours) if problem]
repository.finish(problems, f"{len(ours)} files are tidy")
