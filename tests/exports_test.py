# SPDX-License-Identifier: Apache-2.0
"""libduet.so exports what the public headers declare: all of it, and nothing else."""

import json
import shutil
import subprocess

import repository

LIBRARY = repository.BUILD / "libduet.so"


def declared():
    """Functions and variables that the public headers declare, as ctags sees them."""
    listed = subprocess.run(
        ["ctags", "--output-format=json", "--languages=C", "--langmap=C:.h", "--kinds-C=px",
         "-I", "DUET_MUST_CHECK", "-R", "-f", "-", "core/include/duet"],
        cwd=repository.ROOT, capture_output=True, text=True, check=True).stdout
    return {json.loads(line)["name"] for line in listed.splitlines()}


def exported():
    listed = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", LIBRARY],
                            capture_output=True, text=True, check=True).stdout
    return {line.split()[0].split("@")[0] for line in listed.splitlines()}


if not LIBRARY.exists() or not shutil.which("ctags"):
    repository.skip("no libduet.so, or no ctags to read the headers with")
promised, given = declared(), exported()
problems = [f"libduet.so exports {name}, which no public header declares"
            for name in sorted(given - promised)]
problems += [f"libduet.so lacks {name}, which a public header declares"
             for name in sorted(promised - given)]
if not promised:
    problems.append("no declaration was found in the public headers")
repository.finish(problems, f"libduet.so exports the {len(given)} names of its headers")
