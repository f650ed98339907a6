# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of the examples: runs programs without any of duet's settings."""

import os
import re
import subprocess

from repository import BUILD, skip


def run(program, *arguments, launcher=(), **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not re.match(r"DUET_[A-Z]", name)}
    return subprocess.run([*launcher, BUILD / "examples" / program, *arguments],
                          env={**environment, **variables}, capture_output=True, text=True,
                          check=False)


def need(*programs, why="no example programs"):
    """Ends a test as skipped where the programs are not built."""
    if not all((BUILD / "examples" / program).exists() for program in programs):
        skip(why)
