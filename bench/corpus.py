#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A corpus of recorded real runs, and what models of kernels err on it.

record: 90 cases (on two cores) in ten rounds (--rounds), forward and backward in turn, each with a
warm-up and one to three recorded runs, after a calibration of what the runtime's own operations
take; some ten minutes, in which the machine should do nothing else. Writes FOLDER/NAME.jsonl.gz and
the machine, FOLDER/NAME.json.

states: how much of what a run takes longer or shorter than usual it has in common with runs before
it: the deviation of one turn's state (the median of makespans by the case's median) from that of
another, by how long ago that was. What is not there at short distances is the machine's state,
which calibration and measurement share if they are as near to each other.

compare: leaves runs out, fits each model to the rest, and holds its predictions against what was
left out. "kernels": the time of all kernels of a case, where they ran and beside what; "makespan":
of a simulation. median and 95 % are of absolute errors of the cases' medians, bias is the median of
the signed ones, in percent; "better" and "worse": cases of which the error is more than the case's
noise below, or beyond, that of the first model. The noise of a case is how far the medians of its
odd and of its even rounds are apart. Nothing is measured: the figures are the same every time.
"""

import collections
import concurrent.futures
import functools
import gzip
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile

import common

CASES = [
    ("cholesky", [(512, 128), (1024, 128), (1024, 256), (2048, 128), (2048, 256), (2048, 512),
                  (4096, 256), (4096, 512)], ["ws", "heft"]),
    ("lu", [(512, 128), (1024, 128), (1024, 256), (2048, 256), (3072, 256), (2048, 512),
            (3072, 512)], ["ws", "heft"]),
    ("gemm", [(512, 128), (1024, 128), (1024, 256), (2048, 256), (2048, 512), (3072, 512)], ["ws"]),
    ("jacobi2d", [(2048, 256), (4096, 256), (4096, 512), (8192, 512)], ["ws"]),
    ("saxpy", [(1 << 20, 65536), (1 << 22, 65536), (1 << 24, 65536), (1 << 22, 262144),
               (1 << 24, 262144)], ["ws"]),
]
SMALL = [
    ("cholesky", [(256, 64), (512, 64), (1024, 64), (256, 128), (512, 128), (1024, 128)],
     ["ws", "heft"]),
    ("lu", [(256, 64), (512, 64), (1024, 64), (256, 128), (512, 128), (1024, 128)], ["ws", "heft"]),
    ("gemm", [(256, 64), (512, 64), (512, 128), (1024, 128)], ["ws"]),
]
SCHEMES = {"none": "nothing left out", "case": "left out: a size and tile on as many workers",
           "size": "left out: a size", "workers": "left out: all runs on as many workers",
           "half": "left out: the first or the second half of the rounds",
           "turn": "left out: every other round"}


def all_cases(table, workers):
    return [f"{workload}:{n}:{tile}:{cpus}:{policy}" for workload, sizes, policies in table
            for n, tile in sizes for cpus in sorted({1, workers}) for policy in policies]


def record(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    workers = len(os.sched_getaffinity(0))
    machine = options.folder / f"{options.name}.json"
    runs = options.folder / f"{options.name}.jsonl.gz"
    common.execute([options.build / "duet", "calibrate", "saxpy", "--tile", "65536", "--budget",
                    options.budget, "--gpus", "0", "--quiet", "--replace", "--name", options.name,
                    "--out", machine])
    cases = options.cases or all_cases(SMALL if options.small else CASES, workers)
    with tempfile.TemporaryFile() as lines:
        subprocess.run([options.build / "bench" / "corpus", "record", str(options.rounds), *cases],
                       stdout=lines, check=True)
        lines.seek(0)
        with open(runs, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            for line in lines:
                packed.write(line)
    print(f"{runs}: {runs.stat().st_size / 1e6:.1f} MB; {machine}")


def predict(what, options, corpus, workload):
    """The lines of "compare" or "intervals" about the runs of a workload."""
    program = [options.build / "bench" / "corpus", what, str(options.simulations),
               str(corpus).replace(".jsonl.gz", ".json"), workload]
    with tempfile.TemporaryFile() as lines:
        with gzip.open(corpus) as packed:
            lines.write(packed.read())
        lines.seek(0)
        result = subprocess.run(program, stdin=lines, stdout=subprocess.PIPE, check=True)
    return common.objects(result.stdout.decode())


def predict_all(what, options, corpus):
    """Those about all workloads, by all cores."""
    workloads = dict.fromkeys(case[0] for case, _ in recorded_runs(corpus))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.map(functools.partial(predict, what, options, corpus), workloads), [])


def noises(corpus):
    """{case: how far the median makespans of odd and of even rounds are apart}"""
    found = collections.defaultdict(lambda: ([], []))
    for case, run in recorded_runs(corpus):
        found[case][run["round"] % 2].append(run["makespan_s"])
    return {case: abs(statistics.median(odd) / statistics.median(even) - 1)
            for case, (even, odd) in found.items() if odd}


def recorded_runs(corpus):
    """(case, run) of each"""
    with gzip.open(corpus, "rt") as lines:
        for line in lines:
            run = json.loads(line)
            if "run" in run:
                yield (run["run"], run["n"], run["tile"], run["cpus"], run["policy"]), run


def turns(corpus):
    """[(date, log of the state)] of all turns, in order"""
    found, usual = {}, collections.defaultdict(list)
    for case, run in recorded_runs(corpus):
        found.setdefault((run["at_s"], case), []).append(run["makespan_s"])
        usual[case].append(run["makespan_s"])
    return [(date, math.log(statistics.median(runs) / statistics.median(usual[case])))
            for (date, case), runs in sorted(found.items())]


def states(options):
    for corpus in options.corpus:
        known = turns(corpus)
        print(f"{corpus.name}: {len(known)} turns\n"
              f"{'turns ago':>9}{'seconds':>9}{'deviation %':>13}")
        for ago in 1, 2, 4, 8, 16, 32, 64, 128, 256, 512:
            pairs = list(zip(known, known[ago:]))
            if pairs:
                apart = statistics.median(abs(a[1] - b[1]) for a, b in pairs)
                print(f"{ago:9}{statistics.median(b[0] - a[0] for a, b in pairs):9.1f}"
                      f"{100 * apart / 0.6745 / math.sqrt(2):13.2f}")


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def row(errors, first, noise):
    """errors, and those of the first model, by case"""
    sizes = [abs(error) for error in errors.values()]
    apart = [(abs(error) - abs(first[case]), noise[case[0]]) for case, error in errors.items()
             if case in first]
    return [str(len(sizes)), f"{100 * statistics.median(sizes):.2f}",
            f"{100 * percentile(sizes, 0.95):.1f}",
            f"{100 * statistics.median(errors.values()):+.2f}",
            str(sum(difference < -limit for difference, limit in apart)),
            str(sum(difference > limit for difference, limit in apart))]


def table(lines, scheme, noise):
    errors = {level: collections.defaultdict(dict) for level in ("kernel_error", "makespan_error")}
    for line in lines:
        case = (line["workload"], line["n"], line["tile"], line["cpus"], line["policy"])
        for level, models in errors.items():
            if line["scheme"] == scheme and line[level] is not None and case in noise:
                models[line["model"]][case, line["fold"]] = line[level]
    heads = f"{'cases':>6}{'median':>8}{'95 %':>7}{'bias':>8}{'better':>7}{'worse':>6}"
    print(f"\n{SCHEMES[scheme]}\n{'':14}{'kernels':^42}  {'makespan':^42}\n"
          f"{'':14}{heads}  {heads}")
    for model in dict.fromkeys(line["model"] for line in lines):
        cells = []
        for models in errors.values():
            first = models[lines[0]["model"]]
            cells += row(models[model], first, noise) if models[model] else ["-"] * 6
        print(f"{model:14}" + "".join(cell.rjust(width) for cell, width
                                      in zip(cells, 2 * [6, 8, 7, 8, 7, 8])))


def compare(options):
    for corpus in options.corpus:
        noise = noises(corpus)
        lines = predict_all("compare", options, corpus)
        if options.out:
            options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{corpus.name}: {len(noise)} cases, noise: median "
              f"{100 * statistics.median(noise.values()):.2f} %, 95 % "
              f"{100 * percentile(noise.values(), 0.95):.1f} %")
        for scheme in SCHEMES:
            table(lines, scheme, noise)


def main():
    parser = common.parser_of(__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record")
    one.add_argument("--rounds", type=int, default=10)
    one.add_argument("--budget", default="20s", help="of the calibration")
    one.add_argument("--cases", nargs="+", help="others: WORKLOAD:N:TILE:WORKERS:POLICY")
    one.add_argument("--small", action="store_true", help="problems of 0.2 to 40 ms instead")
    one.add_argument("--name", default=platform.node().split(".")[0], help="of the machine")
    one.add_argument("--folder", type=pathlib.Path, default=common.SOURCE / "bench" / "corpus")
    one.set_defaults(run=record)
    two = commands.add_parser("compare")
    two.add_argument("corpus", nargs="+", type=pathlib.Path, help="FILE.jsonl.gz")
    two.add_argument("--out", type=pathlib.Path, help="every case of every model, JSON lines")
    two.add_argument("--simulations", type=int, default=15, help="of a case, 99 at most")
    two.set_defaults(run=compare)
    three = commands.add_parser("states")
    three.add_argument("corpus", nargs="+", type=pathlib.Path, help="FILE.jsonl.gz")
    three.set_defaults(run=states)
    for command in one, two, three:
        command.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
