#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What policies in Python cost: Cholesky on Idgraf, simulated under policies in C and in Python.
Medians of seconds of cores, from the opening of the runtime to its closing, each in a process of
its own, and of whole calls of duet.simulate with their processes; beside them the ratios to those
in C."""

import os
import re
import resource
import statistics
import sys
import tempfile
import time

import common

sys.path.insert(0, str(common.SOURCE / "python"))
import duet  # noqa: E402: found by the path above


class Eager(duet.Policy):
    """The built-in policy eager: one shared list."""

    order = "heap"

    def push(self, view, tasks, by, now):
        for task in tasks:
            view.push_tail(view.shared(), task)

    def pop(self, view, worker, now):
        return view.pop_head(view.shared(), worker)


exec(re.search(r"```py\n(.*?)\n\n\nif __name__", (common.SOURCE / "docs/python.md").read_text(
    encoding="utf-8"), re.DOTALL)[1])  # class Earliest
POLICIES = {"eager": "eager", "Eager": Eager(),
            "heft": "heft", "Earliest": Earliest()}  # noqa: F821


def core_s():
    """Seconds of cores of this process, and of those that it has started and that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--duet", default="build/duet", metavar="COMMAND")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tiles", type=int, default=40, metavar="N", help="a side")
    parser.add_argument("--one", nargs=2, metavar=("POLICY", "GRAPH"), help="one simulation alone")
    options = parser.parse_args()
    os.environ["DUET"] = options.duet
    if options.one:
        start = time.process_time()
        with duet.Runtime(simulate="idgraf", policy=POLICIES[options.one[0]]) as runtime:
            runtime.submit_graph(options.one[1])
        print(time.process_time() - start)
        return
    problem, rows = {"platform": "idgraf", "n": 960 * options.tiles, "tile": 960}, []
    with tempfile.TemporaryDirectory() as folder:
        graph = duet.export("cholesky", out=f"{folder}/graph.json", **problem)
        for name, policy in POLICIES.items():
            cores, calls = [], []
            for _ in range(options.repeats):
                cores.append(float(common.execute([sys.executable, __file__, "--duet", options.duet,
                                                  "--one", name, graph])))
                start = core_s()
                duet.simulate("cholesky", policy=policy, **problem)
                calls.append(core_s() - start)
            row = {"policy": name, "core s": statistics.median(cores),
                   "call s": statistics.median(calls)}
            if policy != name:
                row.update({f"{key} ratio": row[f"{key} s"] / rows[-1][f"{key} s"]
                            for key in ("core", "call")})
            rows.append(row)
    print("\n".join(common.table(rows, ["policy", "core s", "core ratio", "call s", "call ratio"])))


if __name__ == "__main__":
    main()
