#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast duet simulates: whole processes, Cholesky of growing size on 4 CPUs and 8 GPUs.

For each size and policy: simulated tasks a wall second, and bytes a task: growth of the peak
memory from the smallest size on, with all tasks submitted at once. Medians over REPEATS runs.

Usage: bench/sim_speed.py [--duet build/duet] [--repeats 3] [--tiles 20,40,80,160]
"""

import argparse
import os
import statistics
import subprocess
import time

POLICIES = ["eager", "ws", "data-aware", "locality-aware", "heft"]


def run(duet, tiles, policy, window):
    """Wall seconds and peak memory (bytes) of one whole process."""
    command = [duet, "simulate", "cholesky", "--platform", "idgraf", "--n", str(960 * tiles),
               "--tile", "960", "--cpus", "4", "--gpus", "8", "--policy", policy, "--set-arch",
               "--quiet", "--csv"]
    if window:
        command += ["--window", str(window)]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status:
        raise SystemExit(f"sim_speed: {' '.join(command)} failed")
    return seconds, usage.ru_maxrss * 1024


def tasks_of(tiles):
    return tiles * (tiles + 1) * (tiles + 2) // 6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--duet", default="build/duet")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiles", default="20,40,80,160")
    options = parser.parse_args()
    sizes = [int(size) for size in options.tiles.split(",")]

    print(f"{'tiles':>5} {'tasks':>8} {'policy':<15} {'wall s':>8} {'min':>8} {'max':>8} "
          f"{'tasks/s':>9} {'us/task':>8} {'peak MB':>8}")
    for tiles in sizes:
        for policy in POLICIES:
            runs = [run(options.duet, tiles, policy, 0) for _ in range(options.repeats)]
            walls = [seconds for seconds, _ in runs]
            wall = statistics.median(walls)
            tasks = tasks_of(tiles)
            print(f"{tiles:>5} {tasks:>8} {policy:<15} {wall:8.3f} {min(walls):8.3f} "
                  f"{max(walls):8.3f} {tasks / wall:9.0f} {1e6 * wall / tasks:8.3f} "
                  f"{runs[0][1] / 1e6:8.1f}", flush=True)

    small, large = min(sizes), max(sizes)
    least, most = (run(options.duet, tiles, "ws", 10**7)[1] for tiles in (small, large))
    tasks = tasks_of(large) - tasks_of(small)
    handles = (large * (large + 1) - small * (small + 1)) // 2
    print(f"bytes a task, all {tasks_of(large)} submitted at once: {(most - least) / tasks:.0f} "
          f"(with {handles} handles and their replicas)")


if __name__ == "__main__":
    main()
