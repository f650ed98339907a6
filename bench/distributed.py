#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cholesky and LU over several processes of this machine, one core each: duet beside ScaLAPACK and,
where starpu-examples is installed, StarPU's Cholesky over MPI, in rounds in which each runs once.

Rates are in Gflop/s (n^3/3, 2n^3/3 flops), `ratio` is that to duet's of the same precision. What
processes send is counted by MPI's profiling interface in one more run of each, beside the least
that the distribution needs if tiles are sent: each version of a tile once to every other node that
reads it. Messages of collectives count as the fewest that do it.

ScaLAPACK's LU exchanges rows, duet's does not. StarPU's Cholesky is in single precision, and sends
an envelope with each tile; its LU over MPI (plu_example_double) did not end here, and is left out.
"""

import json
import pathlib
import statistics
import tempfile

import common

OPERATIONS = ["cholesky", "lu"]
STARPU = "mpi/mpi_cholesky_distributed"
COLUMNS = ["operation", "precision", "n", "tile", "nodes", "peer", "median", "least", "most",
           "ratio", "messages", "least messages", "MB", "least MB"]
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OPENBLAS_NUM_THREADS": "1"}


class Peer:
    """A program that measures one operation."""

    def __init__(self, options, operation, home):
        self.options, self.operation, self.home = options, operation, home

    def start(self, *command, **variables):
        count = self.options.rows * self.options.cols
        return common.execute(["mpirun", "-wdir", self.home, "-n", count, *command], **MPI,
                              **variables)

    def duet(self, precision, warmup=1, **variables):
        o = self.options
        output = self.start(o.build / "duet", "run", self.operation, "--n", o.n, "--tile", o.tile,
                            "--precision", precision, "--nodes", f"{o.rows}x{o.cols}", "--cpus", 1,
                            "--gpus", 0, "--policy", "lws", "--warmup", warmup, "--reps", 1,
                            "--quiet", "--json", **variables)
        return common.rate(self.operation, o.n,
                           json.loads(output)["runs"][0]["makespan_s"]["median"])

    def duet_single(self, **variables):
        return self.duet("s", **variables)

    def duet_double(self, **variables):
        return self.duet("d", **variables)

    def scalapack(self, warmup=1, **variables):
        o = self.options
        output = self.start(o.build / "bench" / "scalapack", self.operation, o.n, o.tile, o.rows,
                            o.cols, warmup, **variables)
        return next(iter(json.loads(output)["values"]), 0)

    def starpu(self, warmup=1, **variables):
        o = self.options
        output = self.start(common.starpu(STARPU), "-size", o.n, "-nblocks", o.n // o.tile,
                            **variables, STARPU_NCPU="1", STARPU_NCUDA="0",
                            STARPU_NOPENCL="0", STARPU_SILENT="1", STARPU_FXT_TRACE="0",
                            STARPU_HOME=self.home)
        return float(next(line.split()[-1] for line in output.splitlines() if "GFlops" in line))

    def sent(self, measure):
        """Messages and megabytes of one run."""
        file = pathlib.Path(self.home) / "messages.txt"
        measure(warmup=0, LD_PRELOAD=str(self.options.build / "bench" / "libcount_mpi.so"))
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        file.unlink()
        return sum(int(line[0]) for line in lines), sum(int(line[1]) for line in lines) / 1e6

    def least(self):
        """The number of times that a tile has to go to a node that does not own it: messages of
        simulated nodes, which workloads/messages_test.py compares with the algorithms."""
        o = self.options
        output = common.execute([o.build / "duet", "simulate", self.operation, "--platform",
                                 "idgraf", "--n", o.n, "--tile", o.tile, "--nodes",
                                 f"{o.rows}x{o.cols}", "--network", "switch:100Gbps,1us",
                                 "--extrapolate", "--json"])
        return json.loads(output)["runs"][0]["nodes"]["messages"]

    def rows(self):
        o = self.options
        peers = {("d", "duet"): self.duet_double, ("d", "scalapack"): self.scalapack}
        if self.operation == "cholesky" and common.starpu(STARPU):
            peers |= {("s", "duet"): self.duet_single, ("s", "starpu"): self.starpu}
        rates = {key: [] for key in peers}
        for _ in range(o.runs):
            for key, measure in peers.items():
                rates[key].append(measure())
        least = self.least()
        for (precision, peer), measure in peers.items():
            messages, megabytes = self.sent(measure)
            values = rates[precision, peer]
            yield {"operation": self.operation, "precision": precision, "n": o.n, "tile": o.tile,
                   "nodes": f"{o.rows}x{o.cols}", "peer": peer, **common.figures(values),
                   "ratio": statistics.median(a / b for a, b in
                                              zip(values, rates[precision, "duet"])),
                   "messages": messages, "least messages": least, "MB": megabytes,
                   "least MB": least * o.tile ** 2 * (4 if precision == "s" else 8) / 1e6}


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--tile", type=int, default=256)
    parser.add_argument("--rows", type=int, default=1, help="of processes")
    parser.add_argument("--cols", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="rounds")
    parser.add_argument("--operations", type=common.names(OPERATIONS), default=OPERATIONS,
                        metavar="LIST", help=f"of {','.join(OPERATIONS)}")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not (options.build / "bench" / "scalapack").exists():
        raise SystemExit("distributed: build/bench/scalapack is not built, for which MPI and "
                         "libscalapack-openmpi-dev are needed")
    rows = []
    with tempfile.TemporaryDirectory() as home:
        for operation in options.operations:
            rows += Peer(options, operation, home).rows()
    common.finish(options, rows, COLUMNS, STARPU)


if __name__ == "__main__":
    main()
