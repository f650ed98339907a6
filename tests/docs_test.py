# SPDX-License-Identifier: Apache-2.0
"""The commands in the documentation work.

Every line that begins with "$ " in a fenced block called console or sh of README.md,
CONTRIBUTING.md or docs/, or of the page that is named on the command line, is run, in order, in a
scratch folder that looks like the repository with this build as build/. It must end with status 0,
or with the one in a final comment ("# exit 2"). Problems are smaller here than on the page, budgets
of measurements and numbers of repetitions, too.
"""

import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys

import repository

# What sets things up, and would start over what is running now.
SKIPPED_PROGRAMS = {"git", "cd", "./setup.sh", "scripts/demo", "scripts/test", "scripts/check",
                    "scripts/format", "scripts/repeat", "sudo", "cmake", "ninja", "xdg-open"}
FENCE = re.compile(r"^\s*```\s*(\w*)")
STATUS = re.compile(r"\s#\s*exit\s+(\d+)\s*$")
SMALLER = [(r"--n (?:96|192|384|400)00\b", "--n 4800"), (r"--reps [1-9]0\b", "--reps 3"),
           (r"--(budget|calibrate-time) [0-9]+s\b", r"--\1 100ms"),
           (r"^duet calibrate (?!--from)", "duet calibrate --no-costs "),
           (r"^duet tune (?!.*--budget)", "duet tune --budget 100ms ")]


def commands(text):
    """(line number, command) of everything that a reader is told to type."""
    language = None
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = FENCE.match(line)
        if fence:
            language = (fence.group(1) or "plain") if language is None else None
        elif language in {"console", "sh"} and line.lstrip().startswith("$ "):
            start = number
            command = line.lstrip()[2:]
            while command.endswith("\\") and number + 1 < len(lines):
                number += 1
                command = command[:-1] + lines[number].strip().removeprefix("> ")
            while number + 1 < len(lines) and lines[number + 1].lstrip().startswith("> "):
                number += 1  # of a text in quotes
                command += "\n" + lines[number].lstrip()[2:]
            yield start + 1, command
        number += 1


def scratch(name):
    """A folder with everything that the repository has at its top, and build/ being this build."""
    folder = repository.BUILD / "docs_test" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for entry in {path.parts[0] for path in repository.files()}:
        (folder / entry).symlink_to(repository.ROOT / entry)
    (folder / "build").symlink_to(repository.BUILD)
    return folder


def test_pattern_problem(command):
    """`ctest -R pattern` is not run, but must choose at least one test."""
    words = shlex.split(command, comments=True)
    listed = subprocess.run(words + ["-N"], cwd=repository.BUILD / "..", capture_output=True,
                            text=True, check=False)
    if "-R" in words and "Total Tests: 0" in listed.stdout:
        return "chooses no test"
    return None


def run(command, folder):
    """None, or what is wrong with this command."""
    for usual, small in SMALLER:
        command = re.sub(usual, small, command)
    words = shlex.split(command, comments=True)
    if not words or words[0] in SKIPPED_PROGRAMS:
        return None
    if words[0] == "ctest":
        return test_pattern_problem(command.replace("--test-dir build",
                                                    f"--test-dir {repository.BUILD}"))
    status = STATUS.search(command)
    expected = int(status.group(1)) if status else 0
    programs = [repository.BUILD, repository.BUILD / "examples", repository.BUILD / "bench"]
    environment = dict(os.environ)
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment["PATH"] = os.pathsep.join([*map(str, programs), environment["PATH"]])
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment,
                            stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != expected:
        return f"status {result.returncode}, expected {expected}:\n{result.stdout[-2000:]}"
    return None


def run_page(path):
    """(number of commands, problems) of one page, whose commands are run in order."""
    place = scratch(str(path).replace("/", "_"))
    typed = list(commands(repository.read(path)))
    problems = [f"{path}:{line}: $ {command}\n  {problem}" for line, command in typed
                if (problem := run(command, place))]
    return len(typed), problems


pages = [path for path in repository.files() if path.suffix == ".md"
         and (str(path) in (sys.argv[1:] or {"README.md", "CONTRIBUTING.md"})
              or path.parts[0] == "docs" and not sys.argv[1:])
         and (path.name != "fortran.md" or shutil.which("gfortran"))]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(run_page, pages))
repository.finish([problem for _, problems in results for problem in problems],
                  f"{sum(count for count, _ in results)} commands of the documentation work")
