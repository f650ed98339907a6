#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a task costs in duet and, where they are installed, in its peers, by the programs that are
built from bench/overhead/.

Every round starts each peer once with each benchmark and number of workers, so that what disturbs
the machine disturbs all of them. A process warms up and repeats; its value is the median of its
repeats. The table has the median, least and most of the processes and the ratio to duet's median.

Usage: bench/overhead.py [--build build] [--runs 5] [--workers 1,2] [--benchmarks LIST]
                         [--peers LIST] [--repeats 3] [--size BENCHMARK=N] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCHMARKS = ["independent", "cholesky", "chain", "fork_join", "fibonacci", "stencil", "saxpy"]

# name: program, environment
PEERS = {
    "duet": ("overhead_duet", {}),
    "duet-window-256": ("overhead_duet", {"DUET_WINDOW": "256"}),
    "libgomp": ("overhead_libgomp", {"OMP_PROC_BIND": "true"}),
    "libomp": ("overhead_libomp", {"OMP_PROC_BIND": "true"}),
    "starpu-lws": ("overhead_starpu", {"STARPU_SCHED": "lws"}),
    "starpu-eager": ("overhead_starpu", {"STARPU_SCHED": "eager"}),
}
STARPU = {"STARPU_SILENT": "1", "STARPU_FXT_TRACE": "0", "STARPU_CALIBRATE": "0"}

COLUMNS = ["benchmark", "case", "workers", "unit", "peer", "median", "least", "most", "ratio"]


def measure(build, peer, benchmark, workers, options, home):
    """{(case, unit): median of the repeats} of one process."""
    program, variables = PEERS[peer]
    size = dict(pair.split("=", 1) for pair in options.size).get(benchmark)
    command = [str(build / "bench" / program), benchmark, str(workers), str(options.repeats)]
    command += [size] if size else []
    environment = {**os.environ, **STARPU, "STARPU_HOME": home, **variables}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"overhead: {' '.join(command)} failed: {result.stderr.strip()}")
    values = {}
    for line in result.stdout.splitlines():
        row = json.loads(line)
        if row["value"] is None:
            print(f"overhead: no {benchmark} of {peer}: efficiency never reached 50 %",
                  file=sys.stderr)
            continue
        values.setdefault((row["case"], row["unit"]), []).append(row["value"])
    return {key: statistics.median(repeats) for key, repeats in values.items()}


def measure_all(build, peers, options):
    """{(benchmark, case, workers, unit, peer): [value of each process]}"""
    samples = {}
    with tempfile.TemporaryDirectory() as home:
        for done in range(options.runs):
            for workers in options.workers:
                for benchmark in options.benchmarks:
                    for peer in peers:
                        values = measure(build, peer, benchmark, workers, options, home)
                        for (case, unit), value in values.items():
                            key = (benchmark, case, workers, unit, peer)
                            samples.setdefault(key, []).append(value)
            print(f"overhead: round {done + 1} of {options.runs} is done", file=sys.stderr)
    return samples


def rows(samples, peers, options):
    """Dictionaries by COLUMNS, peers side by side."""
    order = {name: place for place, name in enumerate(options.benchmarks)}
    place = {name: index for index, name in enumerate(peers)}
    keys = sorted(samples, key=lambda key: (order[key[0]], key[3], key[2], key[1], place[key[4]]))
    for key in keys:
        median = statistics.median(samples[key])
        duet = samples.get((*key[:4], "duet"))
        yield dict(zip(COLUMNS, [*key, median, min(samples[key]), max(samples[key]),
                                 median / statistics.median(duet) if duet else None]))


def print_table(table):
    print(f"{'benchmark':<12} {'case':>7} {'workers':>7} {'unit':<10} {'peer':<16} {'median':>10} "
          f"{'least':>10} {'most':>10} {'ratio':>6}")
    for row in table:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        case = row["case"] or "-"
        print(f"{row['benchmark']:<12} {case:>7} {row['workers']:>7} {row['unit']:<10} "
              f"{row['peer']:<16} {row['median']:>10.4g} {row['least']:>10.4g} "
              f"{row['most']:>10.4g} {ratio:>6}")


def names(known):
    """An argument that lists some of `known`."""
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"unknown '{name}': known are {', '.join(known)}")
        return chosen
    return parse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", default=[1, 2],
                        type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--benchmarks", default=BENCHMARKS, type=names(BENCHMARKS))
    parser.add_argument("--peers", default=list(PEERS), type=names(list(PEERS)))
    parser.add_argument("--size", action="append", default=[], metavar="BENCHMARK=N")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    build = options.build.resolve()
    peers = [peer for peer in options.peers if (build / "bench" / PEERS[peer][0]).exists()]
    missing = [peer for peer in options.peers if peer not in peers]
    if not peers:
        raise SystemExit(f"overhead: none of {', '.join(missing)} is built in {build}")
    table = list(rows(measure_all(build, peers, options), peers, options))
    print_table(table)
    if missing:
        print(f"not built, so not measured: {', '.join(missing)}")
    if options.json:
        report = {"runs": options.runs, "repeats": options.repeats, "missing": missing,
                  "rows": table}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
