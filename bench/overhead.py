#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a task costs in duet and, where they are installed, in its peers, by the programs that are
built from bench/overhead/.

Every round starts each peer once with each benchmark and number of workers, so that what disturbs
the machine disturbs all of them. A process warms up and repeats; its value is the median of its
repeats. The table has the median, least and most of the processes and the ratio to duet's median.
"""

import pathlib
import statistics
import sys
import tempfile

import common

BENCHMARKS = ["independent", "cholesky", "sizes", "chain", "fork_join", "fibonacci",
              "fibonacci_wait", "reduction", "stencil"]

ON_DUET = {"OMP_PROC_BIND": "true", "LD_PRELOAD": "BUILD/modules/libduet-gomp.so"}

# name: program, environment, in which BUILD is the folder of the build
PEERS = {
    "duet": ("overhead_duet", {}),
    "duet-window-256": ("overhead_duet", {"DUET_WINDOW": "256"}),
    "libgomp": ("overhead_libgomp", {"OMP_PROC_BIND": "true"}),
    "libomp": ("overhead_libomp", {"OMP_PROC_BIND": "true"}),
    "libgomp-on-duet": ("overhead_libgomp", ON_DUET),  # the same programs, by duet openmp
    "libomp-on-duet": ("overhead_libomp", ON_DUET),
    "starpu-lws": ("overhead_starpu", {"STARPU_SCHED": "lws"}),
    "starpu-eager": ("overhead_starpu", {"STARPU_SCHED": "eager"}),
}
WITHOUT_STARPU = {"fibonacci_wait", "reduction"}
STARPU = {"STARPU_SILENT": "1", "STARPU_FXT_TRACE": "0", "STARPU_CALIBRATE": "0"}
COLUMNS = ["benchmark", "case", "workers", "unit", "peer", "median", "least", "most", "ratio"]


def measure(peer, benchmark, workers, options, home):
    """{(case, unit): median of the repeats} of one process."""
    program, variables = PEERS[peer]
    variables = {name: value.replace("BUILD", str(options.build))
                 for name, value in variables.items()}
    size = dict(pair.split("=", 1) for pair in options.size).get(benchmark)
    command = [options.build / "bench" / program, benchmark, workers, options.repeats]
    output = common.execute(command + ([size] if size else []), STARPU_HOME=home, **STARPU,
                            **variables)
    values = {}
    for row in common.series(output):
        if None in row["values"]:
            print(f"overhead: no {benchmark} of {peer}: efficiency never reached 50 %",
                  file=sys.stderr)
        else:
            values[row["case"], row["unit"]] = statistics.median(row["values"])
    return values


def measure_all(peers, options):
    """{(benchmark, case, workers, unit, peer): [value of each process]}"""
    samples = {}
    with tempfile.TemporaryDirectory() as home:
        for done in range(options.runs):
            for workers in options.workers:
                for benchmark in options.benchmarks:
                    for peer in peers:
                        if benchmark in WITHOUT_STARPU and peer.startswith("starpu"):
                            continue
                        values = measure(peer, benchmark, workers, options, home)
                        for (case, unit), value in values.items():
                            key = (benchmark, case, workers, unit, peer)
                            samples.setdefault(key, []).append(value)
            print(f"overhead: round {done + 1} of {options.runs} is done", file=sys.stderr)
    return samples


def rows(samples, peers, options):
    """Dictionaries by COLUMNS, peers side by side."""
    def place(key):
        benchmark, case, workers, unit, peer = key
        return options.benchmarks.index(benchmark), unit, workers, case, peers.index(peer)
    for key in sorted(samples, key=place):
        duet = samples.get((*key[:4], "duet"))
        row = {**dict(zip(COLUMNS, key)), **common.figures(samples[key])}
        yield {**row, "ratio": row["median"] / statistics.median(duet) if duet else None}


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=5, help="processes of each kind")
    parser.add_argument("--repeats", type=int, default=3, help="of a process")
    parser.add_argument("--workers", default=[1, 2], type=common.numbers, metavar="LIST")
    parser.add_argument("--benchmarks", default=BENCHMARKS, type=common.names(BENCHMARKS),
                        metavar="LIST", help=f"of {','.join(BENCHMARKS)}")
    parser.add_argument("--peers", default=list(PEERS), type=common.names(PEERS), metavar="LIST",
                        help=f"of {','.join(PEERS)}")
    parser.add_argument("--size", action="append", default=[], metavar="BENCHMARK=N")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()

    options.build = options.build.resolve()
    peers = [peer for peer in options.peers
             if (options.build / "bench" / PEERS[peer][0]).exists()]
    missing = [peer for peer in options.peers if peer not in peers]
    if not peers:
        raise SystemExit(f"overhead: none of {', '.join(missing)} is built in {options.build}")
    report = list(rows(measure_all(peers, options), peers, options))
    print("\n".join(common.table(report, COLUMNS)))
    if missing:
        print(f"not built, so not measured: {', '.join(missing)}")
    common.write_json(options.json, {"runs": options.runs, "repeats": options.repeats,
                                     "missing": missing, "rows": report})


if __name__ == "__main__":
    main()
