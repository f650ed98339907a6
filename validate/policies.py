#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates every policy on many problems and machines, and writes the tables of docs/policies.md.

    validate/policies.py                 prints them, from what validate/policies.csv has
    validate/policies.py --write         simulates what is missing there, and writes both
    validate/policies.py --write --all   simulates everything anew

The tables stand between <!-- begin NAME --> and <!-- end NAME -->, as in reproduction.py. A line of
the file is one policy on one case: the median of runs with different seeds and noise. The times of
Jacobi's kernel, which nobody has measured on Idgraf, are estimated from memories' bandwidths.
"""

import argparse
import concurrent.futures
import csv
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import reproduction

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "policies.md"
RESULTS = ROOT / "validate" / "policies.csv"

TILE = 960
# problem: its options, and how many runs
PROBLEMS = {f"{workload} {tiles}": ((workload, "--n", tiles * TILE, "--tile", TILE), reps)
            for workload, (tiles, reps) in itertools.product(
                ("cholesky", "lu", "qr", "gemm"), ((10, 10), (20, 10), (40, 3)))}
PROBLEMS |= {"jacobi2d": (("jacobi2d", "--param", "iterations=20"), 10),
             "nbody": (("nbody",), 10),
             "sort": (("sort",), 10),
             "layered": (("layered",), 10)}
MACHINES = ((4, 8), (8, 4), (11, 1))
MEMORIES = (100, 20)  # percent
CASES = list(itertools.product(PROBLEMS, MACHINES, MEMORIES, (False, True)))
COLUMNS = ("problem", "cpus", "gpus", "memory", "set_arch", "policy", "makespan_s", "bound_s")

# Jacobi reads and writes 16 bytes a point, of which a core of Idgraf gets about 5 GB/s and a C2050
# with ECC about 110.
BANDWIDTHS = {"x5650": 5e9, "c2050": 110e9}
NEAR = 3  # percent behind the best

# Policies that look at priorities, on Cholesky, 4 + 8
BY_PRIORITY = ("eager", "dmdas", "heteroprio")


def platform(folder):
    """Idgraf with a kernel more."""
    machine = json.loads(reproduction.KERNELS.read_text(encoding="utf-8"))
    points = 1024 * 1024
    machine["curves"] += [
        {"kernel": "djacobi2d", "arch": arch, "origin": "estimated from the memory's bandwidth",
         "points": [{"size": 1024, "flops": 4 * points, "mean_s": 16 * points / bandwidth,
                     "deviation_s": 0.02 * 16 * points / bandwidth, "samples": 10}]}
        for arch, bandwidth in BANDWIDTHS.items()]
    path = pathlib.Path(folder) / "idgraf.json"
    path.write_text(json.dumps(machine), encoding="utf-8")
    return path


def run(words):
    """What `duet` prints; None, with its message, if it refuses."""
    words = list(map(str, [reproduction.command(), *words]))
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        print(f"{' '.join(words)}\n{result.stderr}", file=sys.stderr)
    return None if result.returncode else result.stdout


def known():
    """The policies that there are, in their order."""
    lines = run(["list", "policies"]).splitlines()
    return [line.split()[0] for line in lines if line[:1].strip()]


def key_of(row):
    return tuple(row[column] for column in COLUMNS[:6])


def read():
    if not RESULTS.exists():
        return {}
    with RESULTS.open(encoding="utf-8", newline="") as stream:
        return {key_of(row): row for row in csv.DictReader(stream)}


def row_key(case, policy):
    problem, (cpus, gpus), memory, set_arch = case
    return (problem, str(cpus), str(gpus), str(memory), "yes" if set_arch else "no", policy)


def simulate(case, policies, machine):
    """Rows of a case, by key."""
    problem, (cpus, gpus), memory, set_arch = case
    options, reps = PROBLEMS[problem]
    printed = run(["simulate", *options, "--platform", machine, "--json", "--quiet", "--noise",
                   "--cpus", cpus, "--gpus", gpus, "--gpu-memory", f"{memory}%",
                   "--policy", ",".join(policies), "--reps", reps,
                   *(("--set-arch",) if set_arch else ())])
    rows = {}
    for found in json.loads(printed)["runs"] if printed else []:
        key = row_key(case, found["policy"])
        rows[key] = dict(zip(COLUMNS, (*key, f"{found['makespan_s']['median']:.9g}",
                                       f"{found['bounds_s']['best']:.9g}")))
    return rows


def simulate_missing(rows, policies, cases, done=lambda rows: None):
    """Adds what is not there; `done` is called after each case."""
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool):
        machine = platform(folder)
        missing = {case: lacking for case in cases
                   if (lacking := [p for p in policies if row_key(case, p) not in rows])}
        for case, found in zip(missing, pool.map(
                lambda case: simulate(case, missing[case], machine), missing)):
            print(*case, *missing[case], file=sys.stderr)
            rows |= found
            done(rows)
    return rows


def write(rows, policies):
    order = [row_key(case, policy) for case in CASES for policy in policies]
    with RESULTS.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in order if key in rows)


# ---------------------------------------------------------------------------------------------
# Tables

def share(row):
    """Of the lower bound, in percent of the makespan."""
    return 100 * float(row["bound_s"]) / float(row["makespan_s"])


def mean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def shares(rows, policy, cases):
    return [share(rows[key]) for case in cases if (key := row_key(case, policy)) in rows]


def problems_table(rows, policies, machine, memory, set_arch):
    """A column for each problem, on one machine; the policies as good as they are in the mean."""
    cases = [(problem, machine, memory, set_arch) for problem in PROBLEMS]
    ranked = sorted(policies, key=lambda p: -mean(shares(rows, p, cases)))
    best = {case: max(shares(rows, p, [case])[0] for p in policies if shares(rows, p, [case]))
            for case in cases}
    lines = []
    for policy in ranked:
        cells = []
        for case in cases:
            found = shares(rows, policy, [case])
            text = f"{found[0]:.1f}" if found else "-"
            cells.append(f"**{text}**" if found and found[0] == best[case] else text)
        lines.append([policy, *cells, f"{mean(shares(rows, policy, cases)):.1f}"])
    return reproduction.table(["policy", *PROBLEMS, "mean"], lines)


def machines_table(rows, policies):
    """A column for each machine, the mean over problems; and how far behind the best of each."""
    configurations = list(itertools.product(MEMORIES, (False, True), MACHINES))
    best = {case: max(itertools.chain.from_iterable(shares(rows, p, [case]) for p in policies))
            for case in CASES}
    lines = []
    for policy in sorted(policies, key=lambda p: -mean(shares(rows, p, CASES))):
        cells = [f"{mean(shares(rows, policy, [(p, m, memory, a) for p in PROBLEMS])):.1f}"
                 for memory, a, m in configurations]
        behind = {case: 100 * (1 - shares(rows, policy, [case])[0] / best[case])
                  for case in CASES if shares(rows, policy, [case])}
        worst = max(behind, key=behind.get)
        lines.append([policy, *cells, f"{mean(shares(rows, policy, CASES)):.1f}",
                      sum(value <= NEAR for value in behind.values()),
                      f"{behind[worst]:.0f} % ({worst[0]}, {worst[1][0]} + {worst[1][1]})"])
    heading = [f"{m[0]} + {m[1]}{', 20 %' if memory == 20 else ''}{', set-arch' if a else ''}"
               for memory, a, m in configurations]
    return reproduction.table(["policy", *heading, "mean", f"within {NEAR} % of the best",
                               "furthest behind"], lines)


def priorities_table(policies):
    """GFlop/s of Cholesky by what priorities say."""
    lines = []
    for policy, tiles in itertools.product((p for p in BY_PRIORITY if p in policies), (10, 20, 40)):
        rates = [reproduction.rate(reproduction.simulate_one(
            policy, "cholesky", tiles * TILE, TILE, *reproduction.FULL, reproduction.LOADED,
            "--priorities", which))
            for which in ("none", "workload", "bottom-level")]
        lines.append([policy, tiles, *(f"{rate:.0f}" for rate in rates)])
    return reproduction.table(["policy", "tiles", "none", "workload", "bottom-level"], lines)


def blocks(rows, policies):
    return {"policies-problems": problems_table(rows, policies, (4, 8), 100, False),
            "policies-machines": machines_table(rows, policies),
            "policies-priorities": priorities_table(policies)}


def main():
    parser = argparse.ArgumentParser(description="The tables of docs/policies.md.")
    parser.add_argument("--write", action="store_true", help="simulate, and write them")
    parser.add_argument("--all", action="store_true", help="simulate everything anew")
    wanted = parser.parse_args()
    policies = known()
    rows = {} if wanted.all else read()
    if wanted.write:
        rows = simulate_missing(rows, policies, CASES, lambda rows: write(rows, policies))
    reproduction.put(PAGE, blocks(rows, policies), wanted.write)


if __name__ == "__main__":
    main()
