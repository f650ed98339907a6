#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cholesky, LU and GEMM on the cores of this machine: duet beside OpenBLAS's own threads and, where
starpu-examples is installed, StarPU's examples.

For each problem duet and StarPU first run every tile size once, and the best is kept. Then rounds
in which each runs once, so that what disturbs the machine disturbs all; duet and OpenBLAS warm up,
StarPU's examples have no option for it. Every round also measures dgemm (sgemm) on one core:
"share" is the rate over cores x that. Rates, in Gflop/s, count n^3/3, 2n^3/3 and 2n^3 flops.

OpenBLAS's LU exchanges rows, that of duet and StarPU does not. StarPU's Cholesky exists in single
precision only; its GEMM example reports no time in Debian's build and is left out.
"""

import itertools
import json
import pathlib
import statistics
import sys
import tempfile

import common

STARPU_EXAMPLES = {("cholesky", "s"): "cholesky_implicit",
                   ("lu", "s"): "lu_implicit_example_float",
                   ("lu", "d"): "lu_implicit_example_double"}
COLUMNS = ["operation", "precision", "n", "workers", "peer", "tile", "median", "least", "most",
           "share"]


def starpu_program(operation, precision):
    return common.starpu(f"examples/{STARPU_EXAMPLES.get((operation, precision), 'none')}")


class Problem:
    """One operation, precision, size and number of cores; measures Gflop/s of each peer."""

    def __init__(self, options, home, operation, precision, n, workers):
        self.options, self.home = options, home
        self.operation, self.precision, self.n, self.workers = operation, precision, n, workers

    def duet(self, tile):
        command = [self.options.build / "duet", "run", self.operation, "--n", self.n,
                   "--tile", tile, "--precision", self.precision, "--cpus", self.workers,
                   "--gpus", 0, "--policy", self.options.policy, "--warmup", 1, "--reps", 1,
                   "--quiet", "--json", *(["--verify"] if self.options.verify else [])]
        report = json.loads(common.execute(command))
        return common.rate(self.operation, self.n, report["runs"][0]["makespan_s"]["median"])

    def lapack(self, operation, n, workers):
        program = self.options.build / "bench" / "lapack"
        output = common.execute([program, operation, "--n", n, "--precision", self.precision,
                                 "--threads", workers, "--repeats", 1])
        return common.objects(output)[0]["values"][0]

    def openblas(self, tile):
        return self.lapack(self.operation, self.n, self.workers)

    def starpu(self, tile):
        """It runs once; its own line: size, milliseconds, Gflop/s."""
        output = common.execute([starpu_program(self.operation, self.precision), "-size", self.n,
                                 "-nblocks", self.n // tile],
                                STARPU_NCPU=str(self.workers), STARPU_NCUDA="0",
                                STARPU_NOPENCL="0", STARPU_SCHED="lws", STARPU_SILENT="1",
                                STARPU_FXT_TRACE="0", STARPU_HOME=self.home,
                                OPENBLAS_NUM_THREADS="1")
        return common.rate(self.operation, self.n,
                           float(output.split("\n")[1].split()[1]) / 1000)

    def best_tile(self, measure):
        rates = {tile: measure(tile) for tile in self.options.tiles
                 if self.n % tile == 0 and tile < self.n}
        if not rates:
            raise SystemExit(f"factorizations: no tile of {self.options.tiles} divides {self.n}")
        return max(rates, key=rates.get)

    def rows(self):
        peers = {"duet": self.duet, "openblas": self.openblas}
        if starpu_program(self.operation, self.precision):
            peers["starpu"] = self.starpu
        tiles = {peer: None if peer == "openblas" else self.best_tile(measure)
                 for peer, measure in peers.items()}
        rates = {peer: [] for peer in peers}
        one_core = []
        for _ in range(self.options.runs):
            one_core.append(self.lapack("gemm", 2048, 1))
            for peer, measure in peers.items():
                rates[peer].append(measure(tiles[peer]))
        for peer, values in rates.items():
            shares = [rate / (self.workers * one) for rate, one in zip(values, one_core)]
            yield {"operation": self.operation, "precision": self.precision, "n": self.n,
                   "workers": self.workers, "peer": peer, "tile": tiles[peer],
                   **common.figures(values), "share": statistics.median(shares)}


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--n", type=common.numbers, default=[2048, 4096], metavar="LIST")
    parser.add_argument("--workers", type=common.numbers, default=[1, 2], metavar="LIST")
    parser.add_argument("--runs", type=int, default=5, help="rounds")
    parser.add_argument("--operations", type=common.names(common.CUBES), default=list(common.CUBES),
                        metavar="LIST", help=f"of {','.join(common.CUBES)}")
    parser.add_argument("--tiles", type=common.numbers, default=[128, 192, 256, 384, 512],
                        metavar="LIST", help="of which the best is chosen")
    parser.add_argument("--precisions", type=common.names("sd"), default=["d"], metavar="s,d")
    parser.add_argument("--policy", default="ws")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.build = options.build.resolve()
    for program in "duet", "bench/lapack":
        if not (options.build / program).exists():
            raise SystemExit(f"factorizations: {options.build / program} is not built")

    rows = []
    with tempfile.TemporaryDirectory() as home:
        for case in itertools.product(options.operations, options.precisions, options.n,
                                      options.workers):
            rows += Problem(options, home, *case).rows()
            print(f"factorizations: {' '.join(map(str, case))} is done", file=sys.stderr)
    common.finish(options, rows, COLUMNS, "examples/cholesky_implicit")


if __name__ == "__main__":
    main()
