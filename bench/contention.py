#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which cache lines the core moves between threads for a task, and what that means on many cores.

The core runs on a device that does nothing, compiled so that each of its accesses to memory is
counted: "moves" are those to a line that another thread has (it reads what the other wrote, or
writes what the other has), "contended" those of lines that move for one task in 32 or more, and so
are all tasks'; "waits" are moves of a line that was being moved. Threads are logical: one thread of
the system runs them in turns, the same at every run, each with a clock that accesses and kernels
advance. So "efficiency" is a prediction: the kernels' time over that of all threads, where an
access, an atomic one and a move take what --costs says, moves of one line being one after another.

--measure takes the costs of this machine instead, and sets beside the predicted time that on
threads of the system, and the moves counted on such threads. --top N names the instructions that
move most lines, and the lines.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

import common

GRAPHS = ["independent", "fork_join", "cholesky", "nested"]
COLUMNS = ["graph", "policy", "kernel_ns", "threads", "tasks", "accesses", "atomics", "moves",
           "contended", "waits", "ns", "efficiency"]
MEASURED = ["measured_ns", "real_moves", "real_contended"]
MANY = [0.5, 5, 100]  # nanoseconds where many cores are far from each other
SLOWER = 80  # times, of the core where real threads are counted


def run(program, graph, options, *words):
    size = dict(pair.split("=", 1) for pair in options.size).get(graph)
    return common.objects(common.execute(
        [options.build / "bench" / program, graph, *(["--size", size] if size else []), *words]))


def measured_ns(options, repeats, graph, *words):
    return min(run("contention", graph, options, *words)[0]["ns"] for _ in range(repeats))


def machine_costs(options):
    """[ns of an access, of an atomic one, of a move] of this machine. The first makes predicted and
    measured times of one thread's tasks equal; a turn of two threads is two moves."""
    turns = [run("contention", "costs", options)[0] for _ in range(options.repeats)]
    atomic_ns = min(turn["atomic_ns"] for turn in turns)
    counted = run("contention_count", "independent", options)[0]
    task_ns = measured_ns(options, options.repeats, "independent")
    plain = counted["accesses"] - counted["atomics"]
    return [max(0.1, (task_ns - counted["atomics"] * atomic_ns) / plain), atomic_ns,
            statistics.median(turn["turn_ns"] for turn in turns) / 2]


def written_at(program, addresses):
    """{address: [(file:line, function), its caller if it was put inline, ...]}"""
    if not shutil.which("addr2line"):
        return {}
    output = subprocess.run(["addr2line", "-f", "-i", "-a", "-e", program], text=True, check=True,
                            input="\n".join(map(hex, addresses)), capture_output=True).stdout
    found = {}
    for block in re.split(r"^0x", output, flags=re.MULTILINE)[1:]:
        address, *lines = block.splitlines()
        found[int(address, 16)] = [
            (os.path.relpath(place.split(" ")[0], common.SOURCE), name)
            for name, place in zip(lines[::2], lines[1::2])]
    return found


def place_of(places, *addresses):
    """The place of an access, or of the call of the helper that it is in."""
    chain = [place for address in addresses for place in places.get(address, [])]
    return next((place for place in chain if not re.match(r"core/atomics\.", place[0])),
                (hex(addresses[0]), ""))


def code(place):
    name, _, line = place.rpartition(":")
    path = common.SOURCE / name
    text = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return text[int(line) - 1].strip() if line.isdigit() and int(line) <= len(text) else ""


def print_top(rows, tasks, options):
    """The instructions and the lines that moved, by how often."""
    sites = [row for row in rows if "site" in row]
    lines = [row for row in rows if "line" in row]
    addresses = [row[key] for row in rows for key in ("site", "caller", "read", "read_by",
                                                        "wrote", "wrote_by") if key in row]
    places = written_at(options.build / "bench" / "contention_count", addresses)
    moves = collections.Counter()
    for row in sites:
        moves[place_of(places, row["site"], row["caller"])] += row["moves"]
    for (place, function), count in moves.most_common(options.top):
        print(f"    {count / tasks:7.3f}  {place} {function}: {code(place)}")
    for row in sorted(lines, key=lambda row: -row["moves"])[:options.top]:
        at = [place_of(places, row[key], row[key + "_by"])[0] for key in ("read", "wrote")]
        print(f"    {row['moves'] / tasks:7.3f}  line, read at {at[0]}, written at {at[1]}")


def row_of(graph, policy, kernel_ns, threads, options):
    words = ["--policy", policy, "--threads", threads]
    found = run("contention_count", graph, options, *words, "--kernel", kernel_ns, "--costs",
                ",".join(map(str, options.costs)), *(["--sites"] if options.top else []))
    row = found[0]
    if options.measure:
        row["measured_ns"] = measured_ns(options, options.repeats, graph, *words, "--kernel",
                                         kernel_ns)
        real = run("contention_count", graph, options, *words, "--kernel", SLOWER * kernel_ns,
                   "--real")[0]
        row.update(real_moves=real["moves"], real_contended=real["contended"])
    return row, found[1:]


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--graphs", default=GRAPHS, type=common.names(GRAPHS), metavar="LIST",
                        help=f"of {','.join(GRAPHS)}")
    parser.add_argument("--threads", default=[1, 2, 4, 8, 16, 32, 64, 128, 256],
                        type=common.numbers, metavar="LIST")
    parser.add_argument("--policies", default=["ws"], type=lambda text: text.split(","),
                        metavar="LIST")
    parser.add_argument("--kernels", default=[10000], type=common.numbers, metavar="LIST",
                        help="nanoseconds that a kernel takes")
    parser.add_argument("--size", action="append", default=[], metavar="GRAPH=N")
    parser.add_argument("--costs", type=lambda text: [float(word) for word in text.split(",")],
                        default=MANY, metavar="ACCESS,ATOMIC,MOVE", help=f"nanoseconds ({MANY})")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--repeats", type=int, default=5, help="of what is measured: the least")
    parser.add_argument("--top", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()

    options.build = options.build.resolve()
    if (options.build / "CMakeCache.txt").exists():  # else it is packed
        common.execute(["cmake", "--build", options.build, "--target", "bench-contention",
                        "bench-contention_count"])
    if options.measure:
        options.costs = machine_costs(options)
    columns = COLUMNS + (MEASURED if options.measure else [])
    print("access {:.2f} ns, atomic {:.2f} ns, move {:.1f} ns".format(*options.costs))
    report = []
    for graph in options.graphs:
        for policy in options.policies:
            for kernel_ns in options.kernels:
                for threads in options.threads:
                    row, rest = row_of(graph, policy, kernel_ns, threads, options)
                    report.append(row)
                    if options.top:
                        print(json.dumps(row))
                        print_top(rest, row["tasks"], options)
    print("\n".join(common.table(report, columns)))
    common.write_json(options.json, {"costs_ns": options.costs, "rows": report})


if __name__ == "__main__":
    main()
