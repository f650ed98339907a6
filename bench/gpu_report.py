#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of bench/gpu.py, in the form of the other files of bench/results/.

As a program: prints the page of a results.json, or with --readme the table of its main figures, as
README.md has it.
"""

import json
import pathlib
import statistics

import common

BACK = ("Median, least and most of duet count until the last kernel has ended, back until the "
        "results are in the host's memory again (median): that is what stands beside the peers "
        "with copies, and what the goals look at unless they say otherwise.")
FACTORISATION = ("Gflop/s of n^3/3 (Cholesky) or 2n^3/3 (LU) flops, from the host's memory where "
                 "there are copies. cuSOLVER is its 64-bit interface (cusolverDnXpotrf, "
                 "cusolverDnXgetrf), whose LU exchanges rows, as lu-pivot does; lu does not. "
                 f"Slab: of the GPU's memory what duet may use. {BACK}")
# part: title, text
PARTS = {
    "validate": ("Copies, and what the runtime's own operations cost",
                 "By `duet calibrate`; least and most of a cost are its quartiles."),
    "gemm": ("Matrix product",
             "Gflop/s. Data begins and ends in the host's memory where there are copies; that of "
             "cuBLASXt is page-locked, its tile is its block. Slab: of the GPU's memory what duet "
             "may use; without: 90 % of what is free. Block: so many tiles of C each way are "
             f"computed one block after another. {BACK}"),
    "cholesky": ("Cholesky", FACTORISATION),
    "lu": ("LU", FACTORISATION),
    "overlap": ("Overlap, page-locking, several kernels at once",
                "Gflop/s with a slab of less than the data. Window 1: nothing overlaps. Where "
                f"nothing is shown: window 2, one kernel at a time. {BACK}"),
    "overhead": ("What a task on the GPU costs in duet",
                 "Nanoseconds a task from the first submission to the end of the wait: independent "
                 "tasks without data, which enqueue nothing; a chain, and a Cholesky-shaped graph, "
                 "of kernels that add 1 to a block. Timed: with two timing events a kernel."),
    "memory": ("SAXPY and Jacobi",
               "GB/s, of the bytes that the kernels read and write; cuBLAS in core, with copies of "
               "everything there and back, and duet from the host's memory. Jacobi: ten steps. "
               f"{BACK}"),
}
# those of a part of which some row has a figure
COLUMNS = ["what", "benchmark", "peer", "workload", "precision", "n", "tile", "cpus", "policy",
           "set_arch", "slab", "window", "streams", "timed", "params", "pin", "copies", "unit",
           "median", "least", "most", "back", "to_gpu_GB", "to_host_GB", "idle_percent", "sm_MHz",
           "celsius", "throttled", "verified", "predicted_ms", "measured_ms", "error_percent",
           "noise_percent"]


def block(lines):
    return "```text\n" + "\n".join(lines) + "\n```\n\n"


def table(rows):
    return block(common.table(rows, [name for name in COLUMNS
                                     if any(row.get(name) is not None for row in rows)]))


def part(record, name):
    rows = [row for row in record["rows"] if row["part"] == name]
    if not rows:
        return ""
    title, text = PARTS[name]
    said = dict.fromkeys(line for row in rows for line in row.get("said") or [])
    return f"## {title}\n\n{text}\n\n{table(rows)}" + (
        "Said meanwhile:\n\n" + block(said) if said else "")


def validation(record):
    found = record.get("validation")
    if not found:
        return ""
    rows = [{**case, "predicted_ms": 1e3 * case["predicted"]["median_s"],
             "measured_ms": 1e3 * case["measured"]["median_s"],
             "error_percent": 100 * case["error"], "noise_percent": 100 * case["noise"]}
            for case in found["cases"] if case["error"] is not None]
    total = found["summary"]
    return ("## Predictions\n\nEach case was predicted from a calibration before it was measured "
            "(`duet validate`).\n\n" + table(rows)
            + f"Absolute error: median {100 * total['median']:.1f} %, 95 % of the cases below "
            f"{100 * total['p95']:.1f} %, worst {100 * total['worst']:.1f} %; the fastest policy "
            f"is predicted right in {total['best_right']} of {total['groups']} groups, "
            f"{total['pairs_right']} of {total['pairs']} pairs of policies in their order.\n\n"
            ) if rows else ""


def gpu_of(record):
    devices = {backend["name"]: backend["devices"][0]["description"]
               for backend in record["machine"]["backends"] if backend["devices"]}
    return devices.get("cuda", "an emulated GPU"), devices["cpu"]


def heading(record):
    machine, rows, (gpu, cpu) = record["machine"], record["rows"], gpu_of(record)
    cores_ = machine["host"]["usable_cores"]
    spread = statistics.median([(row["most"] - row["least"]) / row["median"] for row in rows
                                if row["median"]] or [0])
    verified = sum(row.get("verified") is True for row in rows)
    text = (f"# {gpu.split(',')[0]} and {cores_} cores, {record['runs'][-1]['date']}\n\n"
            f"{cpu}, {cores_} cores, {machine['host']['memory_bytes'] / 2**30:.0f} GiB; "
            f"duet {machine['build']['version']}. GPU: {gpu}.\n")
    if record["smi"]:
        text += (f"nvidia-smi (name, driver, clocks at most, power, PCIe generation and width): "
                 f"{record['smi']}.\n")
    text += (f"\nMedian, least and most of the repeats of a row (after one that warms up); "
             f"the median spread of a row is {100 * spread:.1f} %. Results of {verified} rows were "
             f"verified numerically, those of {len(rows) - verified} were not (costs, and what was "
             "cut short).\n\n")
    runs = [f"- `{run['command']}`: {run['seconds']:.0f} s\n" for run in record["runs"]]
    return text + "".join(runs) + "\n"


def goals(record):
    if not record["goals"]:
        return ""
    return "## Goals\n\n| goal | | measured | |\n|---|---|---|---|\n" + "".join(
        f"| {goal['goal']} | {goal['bound']:.2f} | {goal['figure']:.3f} | "
        f"{'reached' if goal['reached'] else '**missed**'} |\n" for goal in record["goals"]) + "\n"


def counts(outcomes):
    words = [outcome.split()[0] for outcome in outcomes]
    return ", ".join(f"{words.count(word)} {word}" for word in ("passed", "failed", "skipped"))


def checks(record):
    if not record["checks"]:
        return ""
    return (f"## Checks\n\n{counts(check['outcome'] for check in record['checks'])}.\n\n"
            + block(common.table(record["checks"], ["name", "outcome", "seconds", "text"])))


def listed(record, key, title):
    lines = [f"- {entry['part']}: {entry['what']}: {entry['why']}\n" for entry in record[key]]
    return f"## {title}\n\n{''.join(lines)}\n" if lines else ""


def cores(record):
    texts = record["texts"].get("cpus", {})
    return "## The cores\n\n" + "".join(
        f"`bench/{name}.py`:\n\n{block(text.rstrip().splitlines())}" for name, text in
        texts.items()) if texts else ""


def markdown(record):
    """The page."""
    return (heading(record) + "Every value is in `results.json`, what the programs said in "
            "`logs.tgz`.\n\n" + goals(record) + checks(record)
            + listed(record, "failures", "What failed")
            + listed(record, "omitted", "What was not measured") + validation(record)
            + "".join(part(record, name) for name in PARTS) + cores(record)
            + "## duet info\n\n" + block(record["info"].rstrip().splitlines())
            + "## Commands\n\n" + block(dict.fromkeys(row["key"] for row in record["rows"])))


def readme(record):
    """The main figures: the best of each peer for each problem, and predictions."""
    figures = {}
    for row in record["rows"]:
        inside = row["peer"] == "cublas" and not row["copies"]
        if row["part"] in {"gemm", "cholesky", "lu"} and not row.get("slab") and (
                inside or row["peer"] != "cublas"):
            key = (row["part"], row["precision"], row["n"],
                   "cublas, data on the GPU" if inside else row["peer"])
            figures[key] = max(figures.get(key, 0), row.get("back") or row["median"])
    text = (f"On {gpu_of(record)[0].split(',')[0]}, {record['runs'][-1]['date']}, from and to the "
            "host's memory unless it says otherwise:\n\n| | precision | n | | Gflop/s |\n"
            "|---|---|--:|---|--:|\n")
    text += "".join(f"| {' | '.join(map(str, key))} | {figures[key]:.0f} |\n"
                    for key in sorted(figures))
    total = record.get("validation", {}).get("summary")
    return text + (f"\nPredictions of {total['cases']} cases, made before they were measured, are "
                   f"{100 * total['median']:.1f} % off in the median.\n" if total else "")


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("results", type=pathlib.Path, metavar="results.json")
    parser.add_argument("--readme", action="store_true", help="the table of README.md")
    options = parser.parse_args()
    try:
        record = json.loads(options.results.read_text(encoding="utf-8"))
        print((readme if options.readme else markdown)(record), end="")
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"gpu_report: {options.results}: {error}") from None


if __name__ == "__main__":
    main()
