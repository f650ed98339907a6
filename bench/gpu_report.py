# SPDX-License-Identifier: Apache-2.0
"""The markdown of bench/gpu.py, in the form of the other files of bench/results/."""

import os

# column: heading, width, from a row
COLUMNS = {
    "call": ("call", -42, lambda row: row.get("call")),
    "benchmark": ("benchmark", -10, lambda row: row.get("benchmark")),
    "memory": ("memory", -17, lambda row: row.get("memory")),
    "direction": ("direction", -10, lambda row: row.get("direction")),
    "bytes": ("bytes", 10, lambda row: row.get("bytes")),
    "peer": ("peer", -9, lambda row: row.get("peer")),
    "workload": ("workload", -9, lambda row: row.get("workload")),
    "precision": ("prec", -4, lambda row: row.get("precision")),
    "n": ("n", 9, lambda row: row.get("n")),
    "tile": ("tile", 8, lambda row: row.get("tile")),
    "cpus": ("cpus", 4, lambda row: row.get("cpus")),
    "policy": ("policy", -14, lambda row: row.get("policy")),
    "slab": ("slab", 9, lambda row: row.get("slab")),
    "window": ("window", 6, lambda row: row.get("window")),
    "streams": ("streams", 7, lambda row: row.get("streams")),
    "copies": ("copies", -6, lambda row: {True: "yes", False: "no"}.get(row.get("copies"))),
    "params": ("options", -17, lambda row: ",".join(
        filter(None, [row.get("params"), row.get("pin") and f"pin={row['pin']}",
                      "set-arch" if row.get("set_arch") else None])) or None),
    "median": ("median", 10, lambda row: row["median"]),
    "least": ("least", 10, lambda row: row["least"]),
    "most": ("most", 10, lambda row: row["most"]),
    "back": ("back", 10, lambda row: row.get("back")),
    "to_gpu": ("to GPU GB", 9, lambda row: gigabytes(row.get("to_gpu"))),
    "to_host": ("to host", 8, lambda row: gigabytes(row.get("to_host"))),
    "idle": ("idle %", 6, lambda row: None if row.get("idle") is None else 100 * row["idle"]),
    "right": ("verified", -8, lambda row: {True: "yes", False: "NO"}.get(row.get("verified"))),
}
VALUES = ["median", "least", "most", "back", "right"]
BACK = ("Median, least and most of duet count until the last kernel has ended, back until the "
        "results are in the host's memory again (median): that is what stands beside the peers "
        "with copies, and what the goals look at.")
PARTS = {
    "copies": ("Copies between host and GPU",
               "Bandwidth, GB/s; both: the sum of both directions at once. Staged: pageable memory "
               "through two page-locked buffers of 4 MiB, by one thread. Tile: rows of 8 KiB that "
               "are 32 KiB apart.",
               ["memory", "direction", "bytes", *VALUES]),
    "costs": ("What CUDA's calls cost", "Microseconds a call on the host.",
              ["call", "median", "least", "most"]),
    "overhead": ("What a task on the GPU costs in duet",
                 "Nanoseconds a task from the first submission to the end of the wait: tasks that "
                 "enqueue nothing, that enqueue a memset of 256 bytes, and a chain of these.",
                 ["benchmark", "window", "streams", *VALUES]),
    "gemm": ("Matrix product",
             "Gflop/s. Data begins and ends in the host's memory where there are copies; that of "
             "cuBLASXt is page-locked, its tile is its block. Slab: of the GPU's memory what duet "
             "may use; without: 90 % of what is free. Block: so many tiles of C each way are "
             f"computed one block after another. {BACK}",
             ["peer", "precision", "n", "tile", "cpus", "policy", "slab", "window", "params",
              "copies", *VALUES, "to_gpu", "to_host", "idle"]),
    "cholesky": ("Cholesky", "", []),
    "lu": ("LU", "", []),
    "overlap": ("Overlap, page-locking, several kernels at once",
                "Gflop/s with a slab of a quarter of the data. Window 1: nothing overlaps; without "
                f"a figure: 2, one kernel at a time. {BACK}",
                ["workload", "n", "tile", "cpus", "slab", "window", "streams", "params", *VALUES,
                 "to_gpu", "to_host", "idle"]),
    "memory": ("SAXPY and Jacobi",
               "GB/s, of the bytes that the kernels read and write; in core, with copies of "
               "everything there and back, and by duet from the host's memory. Jacobi: ten steps. "
               f"{BACK}",
               ["peer", "workload", "precision", "n", "tile", "copies", "params", *VALUES, "to_gpu",
                "to_host"]),
}
FACTORISATION = ("Gflop/s of n^3/3 (Cholesky) or 2n^3/3 (LU) flops, from the host's memory where "
                 "there are copies. cuSOLVER is its 64-bit interface (cusolverDnXpotrf, "
                 "cusolverDnXgetrf), whose LU exchanges rows, as lu-pivot does; lu does not. "
                 f"{BACK}")
FACTORISATION_COLUMNS = ["peer", "workload", "precision", "n", "tile", "cpus", "policy", "slab",
                         "window", "params", "copies", *VALUES, "to_gpu", "to_host", "idle"]


def gigabytes(count):
    return None if count is None else 1e-9 * count


def cell(value, width):
    if value is None:
        text = "-"
    elif isinstance(value, float):
        text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    else:
        text = str(value)
    return text.ljust(-width) if width < 0 else text.rjust(width)


def table(rows, columns):
    """A block of text; columns without any figure are left out."""
    shown = [name for name in columns
             if any(COLUMNS[name][2](row) is not None for row in rows)]
    lines = [" ".join(cell(COLUMNS[name][0], COLUMNS[name][1]) for name in shown)]
    for row in rows:
        lines.append(" ".join(cell(COLUMNS[name][2](row), COLUMNS[name][1]) for name in shown))
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n"


def heading(record):
    machine, device = record["machine"], record["machine"]["device"]
    text = f"# {machine['gpu']} and {machine['cores']} cores, {record['runs'][-1]['date']}\n\n"
    text += (f"{machine['processor']}, {machine['cores']} cores, "
             f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; "
             f"{machine.get('version') or 'duet'}")
    if device:
        text += (f". GPU: {device['device']}, compute capability {device['major']}."
                 f"{device['minor']}, {device['multiprocessors']} multiprocessors, "
                 f"{device['total_bytes'] / 2**30:.0f} GiB ({device['free_bytes'] / 2**30:.0f} "
                 f"free), CUDA driver {version(device['driver'])}, runtime "
                 f"{version(device['runtime'])}, cuBLAS {device['cublas']}")
    text += ".\n"
    if machine.get("smi"):
        text += (f"nvidia-smi (name, driver, clocks at most, power, PCIe generation and width): "
                 f"{machine['smi']}.\n")
    checked = record["verified"]
    text += (f"\nMedian, least and most of the repeats of a row (after one that warms up); "
             f"the median spread of a row is {100 * checked['spread']:.1f} %. Results of "
             f"{checked['yes']} rows were verified numerically, those of {checked['not_asked']} "
             "were not (the choice of options, and what computes nothing).\n\n")
    for run in record["runs"]:
        text += f"- `{run['command']}`: {run['seconds']:.0f} s\n"
    return text + "\n"


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def goals(record):
    if not record["goals"]:
        return ""
    text = "## Goals\n\n| goal | at least | measured | |\n|---|---|---|---|\n"
    for goal in record["goals"]:
        text += (f"| {goal['goal']} | {goal['bound']:.2f} | {goal['figure']:.3f} | "
                 f"{'reached' if goal['reached'] else '**missed**'} |\n")
    return text + "\n"


def listed(record, key, title):
    if not record[key]:
        return ""
    lines = "".join(f"- {entry['part']}: {entry['what']}: {entry['why']}\n"
                    for entry in record[key])
    return f"## {title}\n\n{lines}\n"


def checks(record):
    rows = record.get("checks")
    if not rows:
        return ""
    outcomes = [row["outcome"].split()[0] for row in rows]
    counts = ", ".join(f"{outcomes.count(word)} {word}" for word in ("passed", "failed", "skipped"))
    text = f"## Checks\n\n{counts}.\n\n```text\n"
    for row in rows:
        line = f"{row['name']:<42} {row['outcome']:<10} {row.get('seconds', ''):>5} s"
        text += (line + ("  " + row["text"] if row.get("text") else "")).rstrip() + "\n"
    return text + "```\n\n"


def part(record, name):
    rows = [row for row in record["rows"] if row["part"] == name]
    if not rows:
        return ""
    title, text, columns = PARTS[name]
    if not columns:
        text, columns = FACTORISATION, FACTORISATION_COLUMNS
    measured = [row for row in rows if not row.get("choice")]
    chosen = [row for row in rows if row.get("choice")]
    result = f"## {title}\n\n{text}\n\n"
    if measured:
        result += table(measured, columns) + "\n"
    if chosen:
        result += "Choice of the options, one run each:\n\n" + table(
            chosen, ["workload", "precision", "n", "tile", "cpus", "policy", "slab", "window",
                     "params", "median", "back"])
        result += "\n"
    return result


def commands(record):
    lines = []
    for row in record["rows"]:
        if row.get("command") and row["command"] not in lines:
            lines.append(row["command"])
    if not lines:
        return ""
    return "## Commands\n\n```text\n" + "\n".join(lines) + "\n```\n"


def markdown(record, raw):
    text = heading(record) + f"All values: `{os.path.basename(raw)}`, beside this file.\n\n"
    text += goals(record)
    text += checks(record)
    text += listed(record, "failures", "What failed")
    text += listed(record, "omitted", "What was not measured")
    if record.get("info"):
        text += "## duet info\n\n```text\n" + record["info"].rstrip() + "\n```\n\n"
    for name in PARTS:
        text += part(record, name)
    return text + commands(record)
