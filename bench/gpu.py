#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What duet does with an NVIDIA GPU of this machine, beside cuBLAS, cuBLASXt and cuSOLVER.

The folder of --output gets results.md for people, results.json with every value and logs.tgz with
what the programs said, all anew after each row, and from validate machine.json, the machine to be
simulated. A call with results there measures only what is missing: it may end at any moment.

Parts that check: tests, memcheck, verify. Parts that measure: validate, gemm, cholesky, lu,
overlap, overhead, memory. The machine's cores: cpus, only if it is named. Each part has its share
of the time; what it has no time or memory for is named, not measured. What fails is named, the rest
goes on, and the status is 1. Results are verified by what makes them. Without a GPU: status 77.
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
    "orders": (common.numbers, "65536,32768,16384", "384,256,256",
               "orders of Cholesky; LU: without the first. The middle one chooses tile and policy"),
    "tiles": (common.numbers, "4096,2048", "128,64", "tiles of products and factorisations"),
}


def chosen_parts(text):
    known = {**gpu_parts.SETS, **{name: [name] for name in gpu_parts.PARTS}}
    names = [name for word in common.names(known)(text) for name in known[word]]
    return [name for name in gpu_parts.PARTS if name in names]


def parse():
    parser = common.parser_of(__doc__)
    parser.allow_abbrev = False  # defaults depend on --quick
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
    parser.add_argument("--memory", type=float, default=0, metavar="GIB", help="that the host will "
                        "have, if more than is free now")
    group = parser.add_argument_group("what is measured (LIST: numbers with commas between)")
    for name, (kind, *defaults, text) in PLAN.items():
        group.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "LIST",
                           default=defaults["--quick" in sys.argv],
                           help=f"{text} (default %(default)s)")
    group.add_argument("--policies", type=lambda text: text.split(","), metavar="NAME,...",
                       default=["locality-aware", "ws", "dmdas", "heft"],
                       help="of factorisations and predictions (default "
                       "locality-aware,ws,dmdas,heft)")
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
                       metavar="FILE,...", help="shared libraries of CUDA to look for first")
    options = parser.parse_args()
    if not options.plan and not shutil.which(options.duet[0]):
        parser.error(f"there is no command {options.duet[0]}: --duet names it")
    options.only = [part for part in gpu_parts.PARTS if part in options.again or
                    part in (options.only or gpu_parts.SETS["figures"])]
    # of each product --tile, --gpu-window and --param block; out of core --gpu-memory
    options.gemm_variants = list(zip(options.tiles, (8, 32), (4, 4)))
    options.gemm_memory, options.overlap_memory = (["8GiB", "2GiB"], ["1MiB"] * 2)[options.quick]
    return options


def main():
    options = parse()
    # SIGTERM ends this program by an exception, which also ends the programs that it has started
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))

    try:
        folders = gpu_session.find_libraries(options.libraries)
        os.environ["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [os.environ.get("LD_LIBRARY_PATH"), *folders]))
        session = gpu_session.Session(options)
        why = None if options.plan else session.probe()
    except gpu_session.Stopped as stopped:
        print(f"gpu: {stopped}", file=sys.stderr)
        return 2
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
