# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of bench/: lists on the command line, programs and the JSON lines they
print, summaries of values, and tables."""

import argparse
import glob
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path("build")
# the simulation whose speed is measured
SIMULATED = ["simulate", "cholesky", "--platform", "idgraf", "--tile", "960", "--cpus", "4",
             "--gpus", "8", "--set-arch", "--quiet", "--csv"]
CUBES = {"cholesky": 1 / 3, "lu": 2 / 3, "gemm": 2}  # flops / n^3


def parser_of(text):
    """A parser of options whose help is the script's docstring."""
    return argparse.ArgumentParser(description=text,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def numbers(text):
    return [int(word) for word in text.split(",")]


def names(known):
    """The type of an argument that lists some of `known`."""
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"unknown '{name}': known are {', '.join(known)}")
        return chosen
    return parse


def execute(command, **variables):
    """Standard output of a program, which ends the script if it fails."""
    command = [str(word) for word in command]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            env={**os.environ, **variables})
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr.strip()}")
    return result.stdout


def callgrind(*command, **variables):
    """What valgrind's callgrind writes of a command, a text for each process: a simulation is a
    process of its own."""
    if not shutil.which("valgrind"):
        raise SystemExit(f"{pathlib.Path(sys.argv[0]).stem}: there is no valgrind")
    with tempfile.TemporaryDirectory() as folder:
        execute(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/%p", *command],
                **variables)
        return [path.read_text(encoding="utf-8") for path in pathlib.Path(folder).iterdir()]


def objects(text):
    """The JSON objects that a program printed, one a line."""
    return [json.loads(line) for line in text.splitlines()]


def starpu(program):
    """The path of a program of the package starpu-examples; None: it is not installed."""
    return next(iter(glob.glob(f"/usr/lib/*/starpu/{program}")), None)


def rate(operation, n, seconds):
    """Gflop/s of a factorisation or product of order n."""
    return 1e-9 * CUBES[operation] * n ** 3 / seconds


def finish(options, rows, columns, program):
    """Prints the rows of comparisons with StarPU's examples, and writes them to --json."""
    print("\n".join(table(rows, columns)))
    if not starpu(program):
        print("not installed, so not measured: starpu-examples", file=sys.stderr)
    write_json(options.json, {"runs": options.runs, "rows": rows})


def series(text):
    """Merges lines that differ only in "value" into one with "values"."""
    found = {}
    for line in objects(text):
        values = line.get("values") or [line["value"]]
        facts = {key: value for key, value in line.items() if key not in {"value", "values"}}
        found.setdefault(json.dumps(facts), {**facts, "values": []})["values"] += values
    return list(found.values())


def figures(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def table(rows, columns):
    """Lines of text: a heading, then the rows. Figures, and their headings, are at the right."""
    cells = [[shown(row.get(name)) for name in columns] for row in rows]
    right = [any(isinstance(row.get(name), (int, float)) for row in rows) for name in columns]
    lines = [list(columns), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return ["  ".join(cell.rjust(width) if aside else cell.ljust(width)
                      for cell, width, aside in zip(line, widths, right)).rstrip()
            for line in lines]


def write_json(path, report):
    if path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
