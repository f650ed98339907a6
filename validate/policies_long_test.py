# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/policies.md are what validate/policies.csv says, which has every policy; and a
part of that file, the smaller problems on 4 CPUs and 8 GPUs, set-arch in every other one, is what
the simulator gives."""

import difflib
import os

import policies
import reproduction
import repository

if not os.access(reproduction.command() or "", os.X_OK):
    repository.skip("no duet command")

known, rows, problems = policies.known(), policies.read(), []
again = "run validate/policies.py --write"
lacks = {policy for policy in known for case in policies.CASES
         if policies.row_key(case, policy) not in rows}
if lacks:
    problems.append(f"validate/policies.csv lacks runs of {', '.join(sorted(lacks))}: {again}")

sample = [case for case in policies.CASES
          if case[1:3] == ((4, 8), 100) and case[0].split()[-1] in ("10", "jacobi2d", "layered")]
sample = [case for number, case in enumerate(sample) if number % 4 in (0, 3)]
fresh = policies.simulate_missing({}, known, sample)
changed = [" ".join(key) for key, row in fresh.items() if rows.get(key) not in (None, row)]
if changed:
    problems.append("validate/policies.csv is not what is simulated: " + again + " --all; "
                    + "; ".join(changed[:5]))

page = policies.PAGE.read_text(encoding="utf-8")
if not lacks:
    made = reproduction.filled(page, policies.blocks(rows, known))
    if made != page:
        problems.append(f"docs/policies.md is out of date: {again}\n" + "\n".join(
            difflib.unified_diff(page.splitlines(), made.splitlines(), "committed", "made",
                                 lineterm="", n=0)))
repository.finish(problems, "docs/policies.md holds what the simulator gives")
