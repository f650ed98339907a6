#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast duet simulates: whole processes, Cholesky of growing size on 4 CPUs and 8 GPUs.

For each size and policy: simulated tasks a wall second, medians over the repeats; and bytes a task:
growth of the peak memory from the smallest size on, with all tasks submitted at once.
"""

import os
import subprocess
import time

import common

POLICIES = ["eager", "ws", "data-aware", "locality-aware", "heft"]
COLUMNS = ["tiles", "tasks", "policy", "median", "least", "most", "tasks/s", "us/task", "peak MB"]


def run(duet, tiles, policy, window):
    """Wall seconds and peak memory (bytes) of one whole process."""
    command = [duet, *common.SIMULATED, "--n", str(960 * tiles), "--policy", policy]
    if window:
        command += ["--window", str(window)]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"sim_speed: {' '.join(command)} failed")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def tasks_of(tiles):
    return tiles * (tiles + 1) * (tiles + 2) // 6


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--duet", default="build/duet", metavar="COMMAND")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiles", type=common.numbers, default=[20, 40, 80, 160], metavar="LIST")
    options = parser.parse_args()

    rows = []
    for tiles in options.tiles:
        tasks = tasks_of(tiles)
        for policy in POLICIES:
            runs = [run(options.duet, tiles, policy, 0) for _ in range(options.repeats)]
            row = {"tiles": tiles, "tasks": tasks, "policy": policy,
                   **common.figures([seconds for seconds, _ in runs]),
                   "peak MB": runs[0][1] / 1e6}
            rows.append({**row, "tasks/s": tasks / row["median"],
                         "us/task": 1e6 * row["median"] / tasks})
    print("Whole processes: wall seconds, and what they come to.")
    print("\n".join(common.table(rows, COLUMNS)))

    small, large = min(options.tiles), max(options.tiles)
    least, most = (run(options.duet, tiles, "ws", 10**7)[1] for tiles in (small, large))
    tasks = tasks_of(large) - tasks_of(small)
    handles = (large * (large + 1) - small * (small + 1)) // 2
    if tasks:
        print(f"bytes a task, all {tasks_of(large)} submitted at once: "
              f"{(most - least) / tasks:.0f} (with {handles} handles and their replicas)")


if __name__ == "__main__":
    main()
