#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cholesky, LU and GEMM on the cores of this machine: duet beside OpenBLAS's own threads and, where
starpu-examples is installed, StarPU's examples.

For each problem duet and StarPU first run every tile size once, and the best is kept. Then rounds
in which each runs once, so that what disturbs the machine disturbs all; duet and OpenBLAS warm up,
StarPU's examples have no option for it. Every round also measures dgemm (sgemm) on one core:
"share" is the rate over cores x that. Rates count n^3/3, 2n^3/3 and 2n^3 flops for all.

OpenBLAS's LU exchanges rows, that of duet and StarPU does not. StarPU's Cholesky exists in single
precision only; its GEMM example reports no time in Debian's build and is left out.

Usage: bench/factorizations.py [--build build] [--n 2048,4096] [--workers 1,2] [--runs 5]
           [--operations LIST] [--tiles 128,192,256,384,512] [--precisions d] [--policy ws]
           [--verify] [--json FILE]
"""

import argparse
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CUBES = {"cholesky": 1 / 3, "lu": 2 / 3, "gemm": 2}  # flops / n^3
STARPU_EXAMPLES = {("cholesky", "s"): "cholesky_implicit",
                   ("lu", "s"): "lu_implicit_example_float",
                   ("lu", "d"): "lu_implicit_example_double"}


def execute(command, **variables):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                            env={**os.environ, **variables})
    if result.returncode:
        raise SystemExit(f"factorizations: {' '.join(map(str, command))} failed:\n"
                         f"{result.stderr.strip()}")
    return result.stdout


class Problem:
    """One operation, size, precision and number of cores; measures Gflop/s of each peer."""

    def __init__(self, options, home, operation, n, precision, workers):
        self.options, self.home = options, home
        self.operation, self.n, self.precision, self.workers = operation, n, precision, workers

    def rate(self, seconds):
        return 1e-9 * CUBES[self.operation] * self.n ** 3 / seconds

    def duet(self, tile):
        command = [self.options.build / "duet", "run", self.operation, "--n", self.n,
                   "--tile", tile, "--precision", self.precision, "--cpus", self.workers,
                   "--gpus", 0, "--policy", self.options.policy, "--warmup", 1, "--reps", 1,
                   "--quiet", "--json"]
        command += ["--verify"] if self.options.verify else []
        run = json.loads(execute(command))["runs"][0]
        return self.rate(run["makespan_s"]["median"])

    def lapack(self, operation, n, workers):
        program = self.options.build / "bench" / f"lapack_{self.precision}"
        lines = execute([program, operation, n, workers, 2]).splitlines()
        return json.loads(lines[-1])["gflops"]

    def openblas(self, tile):
        return self.lapack(self.operation, self.n, self.workers)

    def starpu_program(self):
        name = STARPU_EXAMPLES.get((self.operation, self.precision), "none")
        return next(iter(glob.glob(f"/usr/lib/*/starpu/examples/{name}")), None)

    def starpu(self, tile):
        """It runs once; its own line: size, milliseconds, Gflop/s."""
        output = execute([self.starpu_program(), "-size", self.n, "-nblocks", self.n // tile],
                         STARPU_NCPU=str(self.workers), STARPU_NCUDA="0", STARPU_NOPENCL="0",
                         STARPU_SCHED="lws", STARPU_SILENT="1", STARPU_FXT_TRACE="0",
                         STARPU_HOME=self.home, OPENBLAS_NUM_THREADS="1")
        numbers = output.split("\n")[1].split()
        return self.rate(float(numbers[1]) / 1000)

    def one_core(self):
        return self.lapack("gemm", 2048, 1)

    def best_tile(self, measure):
        rates = {tile: measure(tile) for tile in self.options.tiles
                 if self.n % tile == 0 and tile < self.n}
        if not rates:
            raise SystemExit(f"factorizations: no tile of {self.options.tiles} divides {self.n}")
        return max(rates, key=rates.get)

    def rows(self):
        peers = {"duet": self.duet, "openblas": self.openblas}
        if self.starpu_program():
            peers["starpu"] = self.starpu
        tiles = {peer: None if peer == "openblas" else self.best_tile(measure)
                 for peer, measure in peers.items()}
        samples = {peer: [] for peer in peers}
        shares = {peer: [] for peer in peers}
        for _ in range(self.options.runs):
            full = self.workers * self.one_core()
            for peer, measure in peers.items():
                samples[peer].append(measure(tiles[peer]))
                shares[peer].append(samples[peer][-1] / full)
        for peer, rates in samples.items():
            yield {"operation": self.operation, "precision": self.precision, "n": self.n,
                   "workers": self.workers, "peer": peer, "tile": tiles[peer],
                   "gflops": statistics.median(rates), "least": min(rates), "most": max(rates),
                   "share": statistics.median(shares[peer])}


def print_row(row):
    tile = row["tile"] or "-"
    print(f"{row['operation']:<9} {row['precision']:<4} {row['n']:>6} {row['workers']:>7} "
          f"{row['peer']:<9} {tile:>5} {row['gflops']:>8.1f} {row['least']:>8.1f} "
          f"{row['most']:>8.1f} {row['share']:>6.2f}", flush=True)


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--n", type=numbers, default=[2048, 4096])
    parser.add_argument("--workers", type=numbers, default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--operations", type=words, default=list(CUBES))
    parser.add_argument("--tiles", type=numbers, default=[128, 192, 256, 384, 512])
    parser.add_argument("--precisions", type=words, default=["d"])
    parser.add_argument("--policy", default="ws")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    for program in "duet", "bench/lapack_d":
        if not (options.build / program).exists():
            raise SystemExit(f"factorizations: {options.build / program} is not built")

    print(f"{'operation':<9} {'prec':<4} {'n':>6} {'workers':>7} {'peer':<9} {'tile':>5} "
          f"{'Gflop/s':>8} {'least':>8} {'most':>8} {'share':>6}")
    table = []
    with tempfile.TemporaryDirectory() as home:
        for operation in options.operations:
            if operation not in CUBES:
                parser.error(f"unknown operation '{operation}': known are {', '.join(CUBES)}")
            for precision in options.precisions:
                for n in options.n:
                    for workers in options.workers:
                        for row in Problem(options, home, operation, n, precision, workers).rows():
                            print_row(row)
                            table.append(row)
    if not glob.glob("/usr/lib/*/starpu/examples/cholesky_implicit"):
        print("not installed, so not measured: starpu-examples", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"runs": options.runs, "rows": table}, indent=1) + "\n",
                                encoding="utf-8")


if __name__ == "__main__":
    main()
