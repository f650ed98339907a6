# SPDX-License-Identifier: Apache-2.0
"""What the tests of repository rules share: the files of the repository, and a report."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("DUET_SOURCE_DIR", pathlib.Path(__file__).parents[1])).resolve()
BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR", ROOT / "build")).resolve()
SKIPPED = 77

C_SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu"}
SOURCE_SUFFIXES = C_SUFFIXES | {".f90"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
PAGE_SUFFIXES = {".html", ".css", ".js"}


def files():
    """Paths, relative to the root, of all files that belong to the repository."""
    git = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode == 0:
        names = git.stdout.split("\0")
    else:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        names = [name for name in names if not name.startswith(("build", "."))]
    return sorted(pathlib.PurePosixPath(name) for name in names
                  if name and (ROOT / name).is_file())


def sources():
    """C and C++ files, headers included."""
    return [path for path in files() if path.suffix in C_SUFFIXES]


def is_test(path):
    return path.stem.endswith("_test") or path.stem == "testing"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def finish(problems, summary):
    """Prints the problems, or the summary, and ends the process."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problem(s)")
        sys.exit(1)
    print(summary)
    sys.exit(0)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)
