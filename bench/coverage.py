#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often measured runs lie in the intervals that were predicted for them.

FILE.jsonl.gz, corpora (bench/corpus.py): runs are left out, the model is fitted to the others, and
each case that was left out is predicted with the interval of one run and that of the median of as
many runs as there are rounds. FILE.json, of `duet validate --json`: the cases in it. --curves: how
far times of single points of the built-in platforms are from those of their neighbours, by which
points between and beyond measured sizes have their uncertainty.

runs, medians: how many of them lie inside, in percent, with the number. width: of the interval of a
median, half, by the predicted middle; error: of that middle. score: of Gneiting and Raftery (JASA
102(477), 2007), of logarithms, in percent; beside it that of middle +- x % with the x that has the
best score over all cases. Goal: 90 %, widths at most three times the errors.
"""

import collections
import json
import math
import pathlib
import statistics

import common
import corpus as corpora

MISS = 0.1  # of an interval of 90 %


def of_corpus(options, corpus):
    for line in corpora.predict_all("intervals", options, corpus):
        if line["scheme"] != "none" and None not in line["run"] + line["median"]:
            yield {**line, "class": f"left out: a {line['scheme']}"}


def of_validation(path):
    for case in json.loads(path.read_text())["cases"]:
        if case["error"] is not None and case["low_s"] is not None:
            yield {**case, "median": [case["low_s"], case["high_s"]], "run": None,
                   "measured": case["measured"]["makespans_s"], "class": "validated"}


def score(low, high, value):
    return high - low + 2 / MISS * max(low - value, value - high, 0)


def row(name, cases):
    runs = [low <= run <= high for case in cases if case["run"]
            for low, high in [case["run"]] for run in case["measured"]]
    medians, widths, errors, scores = [], [], [], []
    for case in cases:
        low, high = map(math.log, case["median"])
        value = math.log(statistics.median(case["measured"]))
        medians.append(low <= value <= high)
        widths.append((high - low) / 2)
        errors.append(value - (low + high) / 2)
        scores.append(score(low, high, value))
    constant = min(statistics.mean(score(-x / 1000, x / 1000, error) for error in errors)
                   for x in range(5, 1000, 5))
    print(f"{name:28}{100 * sum(runs) / len(runs) if runs else math.nan:7.1f}{len(runs):7}"
          f"{100 * statistics.mean(medians):9.1f}{len(cases):6}"
          f"{100 * statistics.median(widths):8.1f}"
          f"{100 * statistics.median(map(abs, errors)):7.1f}"
          f"{100 * statistics.mean(scores):8.1f}{100 * constant:10.1f}")


def coverage(cases):
    print(f"{'':28}{'runs in %':>14}{'medians in %':>15}{'width %':>8}{'error':>7}{'score':>8}"
          f"{'constant':>10}")
    row("all", cases)
    for key in "class", "workload", "n", "cpus":
        groups = collections.defaultdict(list)
        for case in cases:
            groups[case[key]].append(case)
        for value, members in sorted(groups.items()):
            row(value if key == "class" else f"{key} {value:g}" if key != "workload" else value,
                members)


def curves():
    between, beyond = [], collections.defaultdict(list)
    for path in sorted((common.SOURCE / "platforms").glob("*.json")):
        platform = json.loads(path.read_text())
        for curve in platform.get("curves", []):
            points = sorted((next(point[unit] for unit in ("flops", "bytes", "work")
                                  if unit in point), point["mean_s"]) for point in curve["points"]
                            if "estimated" not in point.get("origin", curve.get("origin", "")))
            for (a, a_s), (work, seconds), (b, b_s) in zip(points, points[1:], points[2:]):
                share = math.log(work / a) / math.log(b / a)
                apart = abs(math.log(a_s / seconds) + share * math.log(b_s / a_s))
                between.append((min(share, 1 - share) * math.log2(b / a), apart))
            for place, (work, seconds) in enumerate(points):
                for near, near_s in points[place + 1:place + 3]:
                    octaves = math.log2(near / work)
                    apart = abs(math.log(near_s / seconds) - octaves * math.log(2))
                    beyond[round(octaves)].append((octaves, apart))
    print(f"{'':24}{'points':>7}{'median %':>10}{'by octave, % / 0.6745':>23}")
    for name, errors in [("between", between), *((f"beyond by {octaves} octaves", beyond[octaves])
                                                 for octaves in sorted(beyond) if octaves)]:
        print(f"{name:24}{len(errors):7}{100 * statistics.median(e for _, e in errors):10.1f}"
              f"{100 * statistics.median(e / o for o, e in errors) / 0.6745:23.1f}")


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("file", nargs="*", type=pathlib.Path,
                        help="FILE.jsonl.gz of bench/corpus.py, or FILE.json of duet validate")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--simulations", type=int, default=39, help="of a case, 99 at most")
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--save", type=pathlib.Path, help="every case, JSON")
    options = parser.parse_args()
    if options.curves:
        curves()
    cases = [case for path in options.file
             for case in (of_validation(path) if path.suffix == ".json"
                          else of_corpus(options, path))]
    if options.save:
        options.save.write_text(json.dumps(cases))
    if cases:
        coverage(cases)


if __name__ == "__main__":
    main()
