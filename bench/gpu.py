#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What duet does with an NVIDIA GPU of this machine, beside cuBLAS, cuBLASXt and cuSOLVER.

Four files, in the folder of --output: results.md for people, results.json with every value,
machine.json, the machine as `duet calibrate` describes it, and logs.tgz, what the programs said.
They are written anew after each row. With results in that folder already, what is missing is
measured, and the rest stays: a session may end at any moment and go on later.

Parts that check: tests, memcheck, verify. Parts that measure: validate, gemm, cholesky, lu,
overlap, overhead, memory. The machine's cores: cpus, only if it is named. Each part has its share
of the time; what it has no time or memory for is named, not measured. What fails is named, the rest
goes on, and the status is 1. Each row is verified by the program that makes it. Without a GPU: 77.
"""

import os
import pathlib
import shlex
import shutil
import signal
import sys

import common
import gpu_parts
import gpu_report
import gpu_session

HERE = pathlib.Path(__file__).resolve().parent

# what is measured; option: its type, otherwise, with --quick, text
PLAN = {
    "reps": (int, 3, 2, "repeats of a measurement, after one that warms up"),
    "gemm-n": (int, 24576, 256, "order of the matrix product"),
    "orders": (common.numbers, [65536, 32768, 16384], [384, 256, 256],
               "orders of the factorisations, of which the middle one chooses tile and policy"),
    "tiles": (common.numbers, [4096, 2048], [128, 64], "their tiles"),
}


def chosen_parts(text):
    known = {**gpu_parts.SETS, **{name: [name] for name in gpu_parts.PARTS}}
    names = [name for word in common.names(known)(text) for name in known[word]]
    return [name for name in gpu_parts.PARTS if name in names]


def parse():
    parser = common.parser_of(__doc__)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("results"),
                        metavar="FOLDER", help="where the files go (default %(default)s)")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS",
                        help="what all of it may take (default %(default)g)")
    parser.add_argument("--only", type=chosen_parts, metavar="PART,...", default=None,
                        help="these parts, or checks, or figures (default: those that measure)")
    parser.add_argument("--again", type=chosen_parts, metavar="PART,...", default=[],
                        help="parts that are made anew although the output has them")
    parser.add_argument("--plan", action="store_true", help="print when each row would begin, by "
                        "what it takes on an H100, and measure nothing")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--memory", type=float, default=0, metavar="GIB", help="of the host, that "
                        "runs may use, where it is more than what is free now")
    group = parser.add_argument_group("what is measured (LIST: numbers with commas between)")
    for name, (kind, full, quick, text) in PLAN.items():
        shown = [",".join(map(str, value)) if isinstance(value, list) else value
                 for value in (full, quick)]
        group.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "LIST",
                           help=f"{text} (default {shown[0]}; --quick: {shown[1]})")
    group.add_argument("--policies", type=lambda text: text.split(","), metavar="NAME,...",
                       default=["locality-aware", "ws", "dmdas", "heft"],
                       help="of factorisations (default locality-aware,ws,dmdas,heft)")
    group.add_argument("--precisions", type=common.names("sd"), default=["d", "s"], metavar="d,s",
                       help="double and single (default: both)")
    group = parser.add_argument_group("programs (default: those of ../build)")
    group.add_argument("--duet", type=shlex.split, metavar="COMMAND", help="the command duet",
                       default=[str(HERE.parent / "build" / "duet")])
    group.add_argument("--programs", type=pathlib.Path, default=HERE.parent / "build" / "bench",
                       metavar="FOLDER", help="where cuda_peers and overhead_cuda are")
    group.add_argument("--tests", type=pathlib.Path, metavar="FOLDER",
                       help="tests to be run, each a program")
    group.add_argument("--libraries", type=lambda text: text.split(","), default=[],
                       metavar="FILE,...", help="libraries of CUDA that are needed")
    options = parser.parse_args()
    for name, (_, full, quick, _) in PLAN.items():
        key = name.replace("-", "_")
        if getattr(options, key) is None:
            setattr(options, key, quick if options.quick else full)
    if not options.plan and not shutil.which(options.duet[0]):
        parser.error(f"there is no command {options.duet[0]}: --duet names it")
    options.only = options.only or gpu_parts.SETS["figures"]
    # tile, --gpu-window and --param block of the product, and memory of the GPU out of core
    options.gemm_variants = list(zip(options.tiles, (8, 32), (4, 4)))
    slabs = ["1MiB", "1MiB"] if options.quick else ["8GiB", "2GiB"]
    options.gemm_memory, options.overlap_memory = slabs
    return options


def main():
    options = parse()
    # so that programs that are under way are ended, too
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))

    try:
        folders = gpu_session.find_libraries(options.libraries)
    except gpu_session.Stopped as stopped:
        print(f"gpu: {stopped}", file=sys.stderr)
        return 2
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        filter(None, [os.environ.get("LD_LIBRARY_PATH"), *folders]))
    session = gpu_session.Session(options)
    why = None if options.plan else session.probe()
    if why:
        print(f"gpu: skipped: {why}", file=sys.stderr)
        return 77
    if not options.plan:
        options.output.mkdir(parents=True, exist_ok=True)
    gpu_parts.run(session)
    record = session.record
    outcomes = [check["outcome"] for check in record["checks"]]
    print(f"gpu: {len(record['rows'])} figures, {len(record['failures'])} failed, "
          f"{len(record['omitted'])} left out, {session.now() - session.start:.0f} s: "
          f"{options.output}", file=sys.stderr)
    for entry in record["omitted"] if options.plan else []:
        print(f"{'left out':9}  {entry['part']:9} {entry['what']}: {entry['why']}")
    if outcomes:
        print(gpu_report.counts(outcomes))
    return 1 if record["failures"] or any("failed" in outcome for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
