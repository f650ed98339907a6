#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the gap between the best policy and the largest lower bound `duet simulate --improve`
closes: factorisations of 5, 10 and 20 tiles a side, layered graphs, and graphs in files that are
named, on three machines of Idgraf's parts."""

import json
import statistics

import common

MACHINES = ["4+8", "2+2", "11+1"]
TILE = ["--tile", "960"]


def problems(options):
    for tiles in options.tiles:
        for name in ["cholesky", "lu", "qr"]:
            yield f"{name} {tiles}", [name, "--n", str(960 * tiles), *TILE]
    yield "layered", ["layered", "--n", "200", "--tile", "1024", "--param", "work=1e9"]
    for path in options.graphs:
        yield path.rsplit("/", 1)[-1], [path]


def measure(options, problem, machine):
    cpus, gpus = machine.split("+")
    output = common.execute([options.duet, "simulate", *problem, "--platform", options.platform,
                             "--cpus", cpus, "--gpus", gpus, "--policy", options.policies,
                             "--improve", f"{options.seconds}s", "--quiet", "--json"])
    runs = {run["policy"]: run for run in json.loads(output)["runs"]}
    improved = runs.pop("improved")
    best = min(runs.values(), key=lambda run: run["makespan_s"]["median"])
    best_s, found_s = best["makespan_s"]["median"], improved["makespan_s"]["median"]
    bound_s = max(value for run in (best, improved) for value in run["bounds_s"].values()
                  if isinstance(value, (int, float)))
    closed = (best_s - found_s) / (best_s - bound_s) if best_s > bound_s else 1
    return improved["tasks"], best["policy"], best_s, found_s, bound_s, closed


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--duet", default="build/duet", metavar="COMMAND")
    parser.add_argument("--platform", default="idgraf", metavar="P")
    parser.add_argument("--policies", default="all", metavar="LIST")
    parser.add_argument("--tiles", type=common.numbers, default=[5, 10, 20], metavar="LIST")
    parser.add_argument("--machines", type=common.names(MACHINES), default=MACHINES,
                        metavar="LIST")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help="a file that duet simulates")
    options = parser.parse_args()
    print(f"{'problem':14}{'CPUs+GPUs':>10}{'tasks':>7}{'best policy':>16}{'s':>10}"
          f"{'improved':>10}{'bound':>10}{'less %':>8}{'closed %':>10}")
    found = []
    for name, problem in problems(options):
        for machine in options.machines:
            tasks, policy, best_s, found_s, bound_s, closed = measure(options, problem, machine)
            found.append(closed)
            print(f"{name:14}{machine:>10}{tasks:7}{policy:>16}{best_s:10.4g}{found_s:10.4g}"
                  f"{bound_s:10.4g}{100 * (1 - found_s / best_s):8.2f}{100 * closed:10.1f}",
                  flush=True)
    print(f"at least half of the gap is closed in {sum(one >= 0.5 for one in found)} of "
          f"{len(found)} cases, in the median case {100 * statistics.median(found):.0f} %")


if __name__ == "__main__":
    main()
