# SPDX-License-Identifier: Apache-2.0
"""The markdown of bench/gpu.py, in the form of the other files of bench/results/."""

import common

BACK = ("Median, least and most of duet count until the last kernel has ended, back until the "
        "results are in the host's memory again (median): that is what stands beside the peers "
        "with copies, and what the goals look at.")
FACTORISATION = ("Gflop/s of n^3/3 (Cholesky) or 2n^3/3 (LU) flops, from the host's memory where "
                 "there are copies. cuSOLVER is its 64-bit interface (cusolverDnXpotrf, "
                 "cusolverDnXgetrf), whose LU exchanges rows, as lu-pivot does; lu does not. "
                 f"{BACK}")
# part: title, text
PARTS = {
    "calibrate": ("Copies, and what the runtime's own operations cost",
                  "By `duet calibrate`; least and most of a cost are its quartiles."),
    "overhead": ("What a task on the GPU costs in duet",
                 "Nanoseconds a task from the first submission to the end of the wait: independent "
                 "tasks without data, which enqueue nothing; a chain, and a Cholesky-shaped graph, "
                 "of tasks whose kernel adds 1 to a block."),
    "gemm": ("Matrix product",
             "Gflop/s. Data begins and ends in the host's memory where there are copies; that of "
             "cuBLASXt is page-locked, its tile is its block. Slab: of the GPU's memory what duet "
             "may use; without: 90 % of what is free. Block: so many tiles of C each way are "
             f"computed one block after another. {BACK}"),
    "cholesky": ("Cholesky", FACTORISATION),
    "lu": ("LU", FACTORISATION),
    "overlap": ("Overlap, page-locking, several kernels at once",
                "Gflop/s with a slab of a quarter of the data. Window 1: nothing overlaps; without "
                f"a figure: 2, one kernel at a time. {BACK}"),
    "memory": ("SAXPY and Jacobi",
               "GB/s, of the bytes that the kernels read and write; cuBLAS in core, with copies of "
               "everything there and back, and duet from the host's memory. Jacobi: ten steps. "
               f"{BACK}"),
}
# those of a part of which some row has a figure
COLUMNS = ["what", "benchmark", "peer", "workload", "precision", "n", "tile", "cpus", "policy",
           "set_arch", "slab", "window", "streams", "params", "pin", "copies", "unit", "median",
           "least", "most", "back", "to_gpu_GB", "to_host_GB", "idle_percent", "verified"]


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
    measured = [row for row in rows if not row.get("choice")]
    chosen = [row for row in rows if row.get("choice")]
    return (f"## {title}\n\n{text}\n\n" + (table(measured) if measured else "")
            + ("Choice of the options, one run each:\n\n" + table(chosen) if chosen else ""))


def heading(record):
    machine, checked = record["machine"], record["verified"]
    devices = {backend["name"]: backend["devices"][0]["description"]
               for backend in machine["backends"] if backend["devices"]}
    gpu = devices.get("cuda", "an emulated GPU")
    text = (f"# {gpu.split(',')[0]} and {machine['host']['usable_cores']} cores, "
            f"{record['runs'][-1]['date']}\n\n{devices['cpu']}, {machine['host']['usable_cores']} "
            f"cores, {machine['host']['memory_bytes'] / 2**30:.0f} GiB; "
            f"duet {machine['build']['version']}. GPU: {gpu}.\n")
    if record["smi"]:
        text += (f"nvidia-smi (name, driver, clocks at most, power, PCIe generation and width): "
                 f"{record['smi']}.\n")
    text += (f"\nMedian, least and most of the repeats of a row (after one that warms up); "
             f"the median spread of a row is {100 * checked['spread']:.1f} %. Results of "
             f"{checked['yes']} rows were verified numerically, those of {checked['not_asked']} "
             "were not (the choice of options, and what computes nothing).\n\n")
    runs = [f"- `{run['command']}`: {run['seconds']:.0f} s\n" for run in record["runs"]]
    return text + "".join(runs) + "\n"


def goals(record):
    if not record["goals"]:
        return ""
    return "## Goals\n\n| goal | at least | measured | |\n|---|---|---|---|\n" + "".join(
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


def markdown(record, raw):
    """The page; `raw` is the name of the file with every value."""
    commands = dict.fromkeys(row["command"] for row in record["rows"])
    return (heading(record) + f"All values: `{raw}`, beside this file.\n\n"
            + goals(record) + checks(record) + listed(record, "failures", "What failed")
            + listed(record, "omitted", "What was not measured")
            + "## duet info\n\n" + block(record["info"].rstrip().splitlines())
            + "".join(part(record, name) for name in PARTS)
            + ("## Commands\n\n" + block(commands) if commands else ""))
