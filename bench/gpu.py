#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What duet does with an NVIDIA GPU of this machine, beside cuBLAS, cuBLASXt and cuSOLVER, in one
run and one result file: markdown for people and, beside it, JSON with every value.

Parts: info, copies, costs, overhead, gemm, cholesky, lu, overlap, memory. Each gets its share of
the time that is left; what it then has no time for is listed, not measured. A measurement that
fails is listed, the rest goes on, and the status is 1. Every result is verified by the program that
made it. With --append the parts are added to those of the file that is there, so that long series
can be made in several runs. Without a GPU: status 77.
"""

import argparse
import json
import pathlib
import shlex
import shutil
import sys

import gpu_parts
import gpu_report
import gpu_session

HERE = pathlib.Path(__file__).resolve().parent
QUICK = {"gemm_n": [256], "gemm_tiles": [64, 128], "matrix_n": 256, "large_n": [384],
         "tiles": [64, 128], "workers": [1], "slab": "2MiB", "reps": 2, "tasks": 50,
         "saxpy_n": 1 << 16, "jacobi_n": 256, "copy_bytes": 1 << 20, "blocks": [64],
        "gemm_windows": [8, 2], "gemm_blocks": [8, 4], "windows": [2, 8]}
FULL = {"gemm_n": [16384, 24576, 32768], "gemm_tiles": [1024, 2048, 4096], "matrix_n": 8192,
        "large_n": [16384, 24576], "tiles": [512, 1024, 2048], "workers": [1, 4, 8, 15],
        "slab": "8GiB", "reps": 3, "tasks": 20000, "saxpy_n": 1 << 28, "jacobi_n": 16384,
        "copy_bytes": 256 << 20, "blocks": [2048, 4096],
        "gemm_windows": [8, 2, 32], "gemm_blocks": [8, 4, 16], "windows": [2, 8]}


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def names(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in gpu_parts.PARTS:
            raise argparse.ArgumentTypeError(
                f"unknown part '{name}': known are {', '.join(gpu_parts.PARTS)}")
    return chosen


# option, its type, the name of its value, text
PLAN = [
    ("reps", int, "N", "repeats of a measurement, after one that warms up"),
    ("gemm-n", numbers, "LIST", "orders of the matrix product"),
    ("gemm-tiles", numbers, "LIST", "its tiles, of which the best is chosen"),
    ("gemm-windows", numbers, "LIST", "its --gpu-window out of core, likewise"),
    ("gemm-blocks", numbers, "LIST", "its --param block out of core, likewise"),
    ("slab", str, "SIZE", "of the GPU's memory what it may use out of core, in double precision"),
    ("blocks", numbers, "LIST", "block sizes of cuBLASXt"),
    ("matrix-n", int, "N", "order of the factorisations"),
    ("tiles", numbers, "LIST", "their tiles, of which the best is chosen"),
    ("workers", numbers, "LIST", "their numbers of CPU workers"),
    ("large-n", numbers, "LIST", "orders of those that are run in and out of core"),
    ("windows", numbers, "LIST", "the --gpu-window of these, of which the best is chosen"),
]


def find(name, places):
    """The first place with an executable of this name, or None."""
    for place in places:
        if place and shutil.which(str(pathlib.Path(place) / name)):
            return str(pathlib.Path(place) / name)
    return None


def add_plan(parser):
    """What is measured: the options of QUICK and FULL that a user may choose."""
    group = parser.add_argument_group("what is measured (LIST: numbers with commas between)")
    for name, kind, metavar, text in PLAN:
        key = name.replace("-", "_")
        full, quick = (",".join(map(str, value)) if isinstance(value, list) else value
                       for value in (FULL[key], QUICK[key]))
        group.add_argument(f"--{name}", type=kind, metavar=metavar,
                           help=f"{text} (default {full}; --quick: {quick})")
    group.add_argument("--policies", type=words, metavar="NAME,...",
                       default=["ws", "locality-aware", "heft", "eager"],
                       help="of the factorisations (default ws,locality-aware,heft,eager)")
    group.add_argument("--precisions", type=words, default=["d", "s"], metavar="d,s",
                       help="double and single (default: both)")


def add_programs(parser):
    group = parser.add_argument_group("programs (default: those of this folder, or of ../build)")
    group.add_argument("--duet", metavar="COMMAND", help="the command duet")
    group.add_argument("--run-options", type=shlex.split, default=[], metavar="TEXT",
                       help="more options of every duet run, in one word: \"--emulate free\"")
    group.add_argument("--programs", metavar="FOLDER",
                       help="where cuda_peers and cuda_overhead are")
    group.add_argument("--peers", metavar="PROGRAM", help="the program cuda_peers")
    group.add_argument("--overhead", metavar="PROGRAM", help="the program cuda_overhead")


def parser_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("results.md"),
                        metavar="FILE", help="the page; every value goes beside it, .json "
                        "(default %(default)s)")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS",
                        help="what all of it may take (default %(default)g)")
    parser.add_argument("--only", type=names, default=list(gpu_parts.PARTS), metavar="PART,...",
                        help="these parts (default: all)")
    parser.add_argument("--append", action="store_true",
                        help="add to the output that is there; parts made anew replace theirs")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--checks", type=pathlib.Path, metavar="FILE",
                        help="what was checked before, for the report: lines of name, outcome, "
                             "seconds and text, with tabs between")
    add_plan(parser)
    add_programs(parser)
    return parser


def parse():
    parser = parser_of()
    options = parser.parse_args()
    for key, value in (QUICK if options.quick else FULL).items():
        if getattr(options, key, None) is None:
            setattr(options, key, value)
    if any(precision not in ("s", "d") for precision in options.precisions):
        parser.error("--precisions takes s and d")

    places = [options.programs, HERE, HERE / ".." / "build" / "bench"]
    options.duet = shlex.split(options.duet or find("duet", [HERE / "..", HERE / ".." / "bin",
                                                             HERE / ".." / "build"]) or "duet")
    options.peers = options.peers or find("cuda_peers", places)
    options.overhead = options.overhead or find("cuda_overhead", places)
    if not shutil.which(options.duet[0]):
        parser.error(f"there is no command {options.duet[0]}: --duet names it")
    return options


def load(path):
    """What a run before has left, to be added to."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"gpu: --append: {error}") from None


def read_checks(path):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    return [dict(zip(("name", "outcome", "seconds", "text"), line.split("\t"))) for line in lines]


def main():
    options = parse()
    raw = options.output.with_suffix(".json")
    before = load(raw) if options.append and raw.exists() else None
    session = gpu_session.Session(options, before)
    if not session.probe():
        print(f"gpu: skipped: {session.why}", file=sys.stderr)
        return 77
    if options.checks:
        session.record["checks"] = read_checks(options.checks)
    options.output.parent.mkdir(parents=True, exist_ok=True)

    def save(record):
        raw.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        options.output.write_text(gpu_report.markdown(record, raw.name), encoding="utf-8")

    record = gpu_parts.run(session, options.only, save)
    failed, left = len(record["failures"]), len(record["omitted"])
    print(f"gpu: {len(record['rows'])} figures, {failed} failed, {left} left out, "
          f"{record['runs'][-1]['seconds']:.0f} s: {options.output}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
