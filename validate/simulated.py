# SPDX-License-Identifier: Apache-2.0
"""What scripts simulate and put into pages: runs of `duet` (the environment's DUET, else
build/duet, else the one of the PATH), published figures, markdown tables."""

import csv
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "platforms" / "published.csv"

POLICIES = ("eager", "ws", "data-aware", "locality-aware", "heft")
FULL = ("--cpus", 4, "--gpus", 8)
ONE_EACH = ("--cpus", 1, "--gpus", 1)
SET_ARCH = ("--set-arch",)
GEMM_ORDER = ("--param", "block=0")  # one tile of C after another, as tiled libraries had it then


def command():
    built = ROOT / "build" / "duet"
    return os.environ.get("DUET") or (str(built) if built.exists() else shutil.which("duet"))


# An option: data is copied with regard to the copies under way. Else from the nearest replica: the
# papers speak of no other choice.
LOADED = "copies that look at load"


@functools.cache
def simulate(workload, n, tile, *options, precision="d", policies=POLICIES, reps=1,
             platform="idgraf"):
    """What `duet simulate --json` says of each policy."""
    words = [command(), "simulate", workload, "--platform", platform, "--json", "--quiet",
             "--n", n, "--tile", tile, "--precision", precision, "--policy", ",".join(policies),
             "--reps", reps, *(option for option in options if option != LOADED),
             *(() if LOADED in options else ("--nearest-source",)),
             *(GEMM_ORDER if workload == "gemm" else ()),
             *(("--extrapolate",) if tile > 960 else ())]
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{result.stderr}")
    return {run["policy"]: run for run in json.loads(result.stdout)["runs"]}


def simulate_one(policy, *problem, **more):
    return simulate(*problem, policies=(policy,), **more)[policy]


def rate(run):
    return run["gflops"]


def bound(run):
    """GFlop/s at which the makespan would be the area bound."""
    return run["gflops"] * run["makespan_s"]["median"] / run["bounds_s"]["area"]


def moved_gb(run):
    return sum(run["bytes"].values()) / 1e9


def differs(published, simulated):
    return 100 * (simulated - published) / published


def table(heading, rows):
    """A markdown table; every column but those of the first row that are words is right-aligned."""
    def numeric(column):
        return all(re.match(r"^[-+]?[\d.,]+( %)?$|^$|^-$", str(row[column])) for row in rows)
    marks = ["--:" if numeric(i) else "---" for i in range(len(heading))]
    lines = [heading, marks, *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


@functools.cache
def published(workload, precision, n, metric="performance", policy=None):
    """The row of a published figure."""
    wanted = {"workload": workload, "precision": precision, "n": str(n), "metric": metric}
    wanted |= {"policy": policy} if policy else {}
    with PUBLISHED.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if wanted.items() <= row.items():
                return row | {"value": float(row["value"])}
    sys.exit(f"{PUBLISHED}: no row for {wanted}")


def verdict(holds):
    return "yes" if holds else "**no**"
