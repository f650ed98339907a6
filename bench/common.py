# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of bench/: lists on the command line, programs and the JSON lines they
print, summaries of values, and tables."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path("build")
# the simulation whose speed is measured
SIMULATED = ["simulate", "cholesky", "--platform", "idgraf", "--tile", "960", "--cpus", "4",
             "--gpus", "8", "--set-arch", "--quiet", "--csv"]


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


def objects(text):
    """The JSON objects that a program printed, one a line."""
    return [json.loads(line) for line in text.splitlines()]


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
