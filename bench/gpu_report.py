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
    "copies": ("Copies between host and GPU",
               "Bandwidth, GB/s; both: the sum of both directions at once. Staged: pageable memory "
               "through two page-locked buffers of 4 MiB, by one thread. Tile: rows of 8 KiB that "
               "are 32 KiB apart."),
    "costs": ("What CUDA's calls cost", "Microseconds a call on the host."),
    "overhead": ("What a task on the GPU costs in duet",
                 "Nanoseconds a task from the first submission to the end of the wait: tasks that "
                 "enqueue nothing, that enqueue a memset of 256 bytes, and a chain of these."),
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
               "GB/s, of the bytes that the kernels read and write; in core, with copies of "
               "everything there and back, and by duet from the host's memory. Jacobi: ten steps. "
               f"{BACK}"),
}
# those of a part of which some row has a figure
COLUMNS = ["call", "benchmark", "memory", "direction", "bytes", "peer", "workload", "precision",
           "n", "tile", "cpus", "policy", "slab", "window", "streams", "options", "copies",
           "median", "least", "most", "back", "to GPU GB", "to host", "idle %", "verified"]
OF_CHOICE = ["workload", "precision", "n", "tile", "cpus", "policy", "slab", "window", "options",
             "median", "back"]


def block(lines):
    return "```text\n" + "\n".join(lines) + "\n```\n\n"


def cells(row):
    """The row with what the columns have under other names, or in other units."""
    options = [row.get("params"), row.get("pin") and f"pin={row['pin']}",
               "set-arch" if row.get("set_arch") else None]
    scaled = {name: row[key] * factor for name, key, factor in
              (("to GPU GB", "to_gpu", 1e-9), ("to host", "to_host", 1e-9), ("idle %", "idle", 100))
              if row.get(key) is not None}
    right = {True: "yes", False: "NO"}.get(row.get("verified"))
    return {**row, **scaled, "options": ",".join(filter(None, options)) or None, "verified": right}


def table(rows, columns):
    rows = [cells(row) for row in rows]
    return block(common.table(rows, [name for name in columns
                                     if any(row.get(name) is not None for row in rows)]))


def part(record, name):
    rows = [row for row in record["rows"] if row["part"] == name]
    title, text = PARTS[name]
    result = f"## {title}\n\n{text}\n\n" if rows else ""
    measured = [row for row in rows if not row.get("choice")]
    chosen = [row for row in rows if row.get("choice")]
    if measured:
        result += table(measured, COLUMNS)
    if chosen:
        result += "Choice of the options, one run each:\n\n" + table(chosen, OF_CHOICE)
    return result


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def heading(record):
    machine, device = record["machine"], record["machine"]["device"]
    text = (f"# {machine['gpu']} and {machine['cores']} cores, {record['runs'][-1]['date']}\n\n"
            f"{machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; "
            f"{machine['version'] or 'duet'}")
    if device:
        text += (f". GPU: {device['device']}, compute capability {device['major']}."
                 f"{device['minor']}, {device['multiprocessors']} multiprocessors, "
                 f"{device['total_bytes'] / 2**30:.0f} GiB ({device['free_bytes'] / 2**30:.0f} "
                 f"free), CUDA driver {version(device['driver'])}, runtime "
                 f"{version(device['runtime'])}, cuBLAS {device['cublas']}")
    text += ".\n"
    if machine["smi"]:
        text += (f"nvidia-smi (name, driver, clocks at most, power, PCIe generation and width): "
                 f"{machine['smi']}.\n")
    checked = record["verified"]
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
    text = heading(record) + f"All values: `{raw}`, beside this file.\n\n"
    text += goals(record) + checks(record)
    text += listed(record, "failures", "What failed")
    text += listed(record, "omitted", "What was not measured")
    if record["info"]:
        text += "## duet info\n\n" + block(record["info"].rstrip().splitlines())
    text += "".join(part(record, name) for name in PARTS)
    commands = dict.fromkeys(row["command"] for row in record["rows"])
    return text + ("## Commands\n\n" + block(commands) if commands else "")
