# SPDX-License-Identifier: Apache-2.0
"""Reads a file of `duet study`: for each policy, how far it is from the best one of each case.

    python3 read_study.py idgraf.db
"""

import collections
import math
import sqlite3
import sys

with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as connection:
    settings = [name for name, in connection.execute("SELECT name FROM settings")]
    case = ", ".join(f'"{name}"' for name in settings if name != "policy")
    rows = connection.execute(f"SELECT policy, avg(makespan_s), {case} FROM runs"
                              f" WHERE error IS NULL GROUP BY policy, {case}").fetchall()

best = {}
for policy, makespan_s, *of_case in rows:
    key = tuple(of_case)
    best[key] = min(best.get(key, math.inf), makespan_s)
ratios = collections.defaultdict(list)
for policy, makespan_s, *of_case in rows:
    ratios[policy].append(makespan_s / best[tuple(of_case)])
for policy, own in sorted(ratios.items(), key=lambda item: sum(map(math.log, item[1]))):
    mean = math.exp(sum(map(math.log, own)) / len(own))
    print(f"{policy:20} {100 * (mean - 1):7.2f} % behind the best in {len(own)} cases")
