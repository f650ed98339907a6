# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reproduction.md are what the simulator gives, to the last digit."""

import difflib
import os
import sys

import reproduction
import repository

if not os.access(reproduction.command() or "", os.X_OK):
    repository.skip("no duet command")

page = reproduction.PAGE.read_text(encoding="utf-8")
fresh = reproduction.filled(page, reproduction.blocks())
problems = []
if fresh != page:
    problems.append("docs/reproduction.md is out of date: run validate/reproduction.py --write and "
                    "read whether its text still holds\n"
                    + "\n".join(difflib.unified_diff(page.splitlines(), fresh.splitlines(),
                                                     "committed", "simulated", lineterm="", n=0)))
if "**none given**" in fresh:
    problems.append("docs/reproduction.md: a difference of more than "
                    f"{reproduction.LARGE} % without a reason (COMPARISONS in {sys.argv[0]})")
repository.finish(problems, "docs/reproduction.md holds what the simulator gives")
