# SPDX-License-Identifier: Apache-2.0
"""clang-tidy finds nothing in C and C++ (it cannot read every toolkit's CUDA). A file that several
targets compile is looked at once. One that passed is not looked at again until it, what it
includes, the configuration or its command line changes. The analyzer, which follows paths and takes
most of the time, looks at the product: each path of a test is run, and under sanitizers, too."""

import concurrent.futures
import functools
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

# Of a function's states, a fifteenth of the default: the rest took most of the analyzer's time and
# hardly reached more code, in 30 product files 98.6 % of blocks instead of 98.4 %.
ANALYZER = [f"--extra-arg={word}"
            for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=15000")]

commands = json.loads((repository.BUILD / "compile_commands.json").read_text(encoding="utf-8"))
for command in commands:  # clang knows one dialect only
    command["command"] = command["command"].replace(" -mtls-dialect=gnu2", "")
passed = repository.BUILD / "tidy"
passed.mkdir(exist_ok=True)
# clang-tidy looks at a file once for each of its commands. Nothing that the build has generated;
# long files first, so that no core waits for one at the end.
ours = sorted({command["file"]: command for command in commands
               if pathlib.Path(command["file"]).exists()
               and repository.BUILD not in pathlib.Path(command["file"]).parents
               and not command["file"].endswith((".cu", ".f90"))}.values(),
              key=lambda command: -pathlib.Path(command["file"]).stat().st_size)
(passed / "compile_commands.json").write_text(json.dumps(ours), encoding="utf-8")
configuration = (repository.ROOT / ".clang-tidy").read_bytes()
sources = {str(path): (repository.ROOT / path).read_bytes() for path in repository.sources()}


@functools.cache
def includes(text):
    """The files of ours that a text includes: all that a name may mean."""
    return [path for name in re.findall(rb'^ *# *include *[<"]([^>"]+)[>"]', text, re.MULTILINE)
            for path in sources if ("/" + path).endswith("/" + name.decode())]


def included(text, known):
    """Adds to `known` the files of ours that a text includes, and those that they do."""
    for path in includes(text):
        if path not in known:
            known.add(path)
            included(sources[path], known)
    return known


def of_tests(path):
    return "test" in path.stem or "tests" in path.parts


def stamp(command):
    """What there is when this file has passed."""
    path = pathlib.Path(command["file"])
    text = path.read_bytes()
    digest = hashlib.sha256(configuration + command["command"].encode() + text)
    for name in sorted(included(text, set())):
        digest.update(name.encode() + sources[name])
    return passed / digest.hexdigest()


def check(paths):
    """None if there is nothing to complain about, else what clang-tidy said."""
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(passed),
         *(["--checks=-clang-analyzer-*"] if of_tests(paths[0]) else ANALYZER),
         "--extra-arg=-w", *map(str, paths)],  # warnings are gcc's, which has others
        cwd=repository.ROOT, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        for path in paths:
            fresh[path].touch()
        return None
    return result.stdout + (result.stderr if not result.stdout else "")


fresh = {pathlib.Path(command["file"]): path for command in ours
         if not (path := stamp(command)).exists()}
# Tests several at once, as a process takes long to begin. Not what the analyzer looks at: in the
# second file of a process it takes every va_list for one that was not begun (LLVM 14).
batches = [paths[first:first + size]
           for paths, size in (([path for path in fresh if not of_tests(path)], 1),
                               ([path for path in fresh if of_tests(path)], 8))
           for first in range(0, len(paths), size)]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = [problem for problem in pool.map(check, batches) if problem]
repository.finish(problems, f"{len(ours)} files are tidy")
