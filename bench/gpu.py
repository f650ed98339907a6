#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What duet does with an NVIDIA GPU of this machine, beside cuBLAS, cuBLASXt and cuSOLVER, in one
run and one result file: markdown for people and, beside it, JSON with every value, and the machine
as `duet calibrate` describes it, to be simulated.

Parts that check: tests, memcheck, verify; parts that measure: calibrate, overhead, gemm, cholesky,
lu, overlap, memory. Each gets its share of the time that is left; what it then has no
time for is listed, not measured. What fails is listed, the rest goes on, and the status is 1. Every
result is verified by the program that made it. With --append the parts are added to those of the
file that is there, so that long series can be made in several runs. Without a GPU: status 77.
"""

import json
import pathlib
import shlex
import shutil
import sys

import common
import gpu_parts
import gpu_report
import gpu_session

HERE = pathlib.Path(__file__).resolve().parent

# what is measured; option: its type, otherwise, with --quick, text
PLAN = {
    "reps": (int, 3, 2, "repeats of a measurement, after one that warms up"),
    "gemm-n": (common.numbers, [16384, 24576, 32768], [256], "orders of the matrix product"),
    "gemm-tiles": (common.numbers, [1024, 2048, 4096], [64, 128],
                   "its tiles, of which the best is chosen"),
    "gemm-windows": (common.numbers, [8, 2, 32], [8, 2], "its --gpu-window out of core, likewise"),
    "gemm-blocks": (common.numbers, [8, 4, 16], [8, 4], "its --param block out of core, likewise"),
    "slab-elements": (int, 1 << 30, 1 << 18,
                      "so much of the GPU's memory it may use out of core"),
    "blocks": (common.numbers, [2048, 4096], [64], "block sizes of cuBLASXt"),
    "matrix-n": (int, 8192, 256, "order of the factorisations"),
    "tiles": (common.numbers, [512, 1024, 2048], [64, 128],
              "their tiles, of which the best is chosen"),
    "workers": (common.numbers, [1, 4, 8, 15], [1], "their numbers of CPU workers"),
    "large-n": (common.numbers, [16384, 24576], [384],
                "orders of those that are run in and out of core"),
    "windows": (common.numbers, [2, 8], [2, 8],
                "the --gpu-window of these, of which the best is chosen"),
    "tasks": (int, 20000, 50, "tasks of an overhead"),
    "tiles-a-side": (int, 40, 4, "of the Cholesky of an overhead, whose tasks compute nothing"),
    "saxpy-n": (int, 1 << 28, 1 << 16, "elements of SAXPY"),
    "jacobi-n": (int, 16384, 256, "order of Jacobi's iteration"),
}


def add_plan(parser):
    group = parser.add_argument_group("what is measured (LIST: numbers with commas between)")
    for name, (kind, full, quick, text) in PLAN.items():
        full, quick = (",".join(map(str, value)) if isinstance(value, list) else value
                       for value in (full, quick))
        metavar = "N" if kind is int else "LIST"
        group.add_argument(f"--{name}", type=kind, metavar=metavar,
                           help=f"{text} (default {full}; --quick: {quick})")
    group.add_argument("--policies", type=lambda text: text.split(","), metavar="NAME,...",
                       default=["ws", "locality-aware", "heft", "eager"],
                       help="of the factorisations (default ws,locality-aware,heft,eager)")
    group.add_argument("--precisions", type=common.names("sd"), default=["d", "s"], metavar="d,s",
                       help="double and single (default: both)")


def parse():
    parser = common.parser_of(__doc__)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("results.md"),
                        metavar="FILE", help="the page; every value goes beside it, .json "
                        "(default %(default)s)")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS",
                        help="what all of it may take (default %(default)g)")
    parser.add_argument("--only", type=common.names(gpu_parts.PARTS), metavar="PART,...",
                        help="these parts (default: those that measure; with --tests all)")
    parser.add_argument("--append", action="store_true",
                        help="add to the output that is there; parts made anew replace theirs")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    add_plan(parser)
    group = parser.add_argument_group("programs (default: those of ../build)")
    group.add_argument("--duet", type=shlex.split, metavar="COMMAND", help="the command duet",
                       default=[str(HERE.parent / "build" / "duet")])
    group.add_argument("--run-options", type=shlex.split, default=[], metavar="TEXT",
                       help="more options of every duet run, in one word: \"--emulate free\"")
    group.add_argument("--programs", type=pathlib.Path, default=HERE.parent / "build" / "bench",
                       metavar="FOLDER", help="where cuda_peers and overhead_cuda are")
    group.add_argument("--tests", type=pathlib.Path, metavar="FOLDER",
                       help="tests to be run, each a program")
    options = parser.parse_args()
    for name, (_, full, quick, _) in PLAN.items():
        key = name.replace("-", "_")
        if getattr(options, key) is None:
            setattr(options, key, quick if options.quick else full)
    if not shutil.which(options.duet[0]):
        parser.error(f"there is no command {options.duet[0]}: --duet names it")
    options.only = options.only or [name for name in gpu_parts.PARTS
                                    if options.tests or name not in gpu_parts.CHECKS]
    return options


def load(path):
    """What a run before has left, to be added to."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"gpu: --append: {error}") from None


def main():
    options = parse()
    raw = options.output.with_suffix(".json")
    session = gpu_session.Session(options, load(raw) if options.append and raw.exists() else None)
    why = session.probe()
    if why:
        print(f"gpu: skipped: {why}", file=sys.stderr)
        return 77
    options.output.parent.mkdir(parents=True, exist_ok=True)

    def save(record):
        common.write_json(raw, record)
        options.output.write_text(gpu_report.markdown(record, raw.name), encoding="utf-8")

    record = gpu_parts.run(session, save)
    outcomes = [check["outcome"] for check in record["checks"]]
    print(f"gpu: {len(record['rows'])} figures, {len(record['failures'])} failed, "
          f"{len(record['omitted'])} left out, {record['runs'][-1]['seconds']:.0f} s: "
          f"{options.output}", file=sys.stderr)
    if outcomes:
        print(gpu_report.counts(outcomes))
    return 1 if record["failures"] or any("failed" in outcome for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
