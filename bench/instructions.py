#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions a task on one worker, counted by valgrind's callgrind: the difference of two sizes
of a benchmark in bench/overhead/, so that starting and ending cancel. Registering the data is
in it: 40 x 40 tiles are 0.12 handles a task. "simulate" is the same of a task that duet simulates,
by its policy ws on 4 CPUs and 8 GPUs.

With --functions N also the N functions with the most instructions of their own. Where ctags is
installed, code counts for the function that it is written in, wherever it was put inline.
"""

import collections
import os
import pathlib
import re
import shutil

import common

# benchmark: two sizes, and the tasks of a size
SIZES = {
    "independent": (2000, 12000, lambda n: n),
    "chain": (2000, 12000, lambda n: n),
    "again": (8, 40, lambda n: 128 * n),
    "graph": (8, 40, lambda n: 128 * n),
    "cholesky": (20, 40, lambda n: n * (n + 1) * (n + 2) // 6),
    "fibonacci": (10, 16, lambda n: calls(n)),
    "fibonacci_wait": (10, 16, lambda n: calls(n)),
    "simulate": (20, 40, lambda n: n * (n + 1) * (n + 2) // 6),
}
SERIAL = "kernel_fibonacci"  # what the result is compared with
REPEATS = 2  # one that warms up, one more
NAMED = re.compile(r"(fn|cfn|fl|fi|fe|cfi|cfl)=\((\d+)\)(?: (.*))?")
COST = re.compile(r"(\+|-|\*|)(\d*) (\d+)$")


def calls(n):
    """Number of calls of the recursion that computes the n-th Fibonacci number."""
    return 1 if n < 2 else 1 + calls(n - 1) + calls(n - 2)


def own_costs(text):
    """{(file, line, function): own instructions} from callgrind's output. `function` includes
    inlined code; file and line are where that is written."""
    own = collections.Counter()
    known = {}
    function, source, line_number, of_call = None, None, 0, False
    for line in text.splitlines():
        named, cost = NAMED.match(line), COST.match(line)
        if named:
            kind, number, name = named.groups()
            key = "fn" if "fn" in kind else "file", number
            known.setdefault(key, name)
            if kind == "fn":
                function = known[key]
            elif kind in {"fl", "fi", "fe"}:
                source = known[key]
        elif line.startswith("calls="):
            of_call = True  # the next line is what the called function took
        elif cost and function:
            sign, digits, instructions = cost.groups()
            step = int(digits or 0)
            line_number = {"+": line_number + step, "-": line_number - step,
                           "*": line_number, "": step}[sign]
            if not of_call and not function.startswith(SERIAL):
                own[source, line_number, function] += int(instructions)
            of_call = False
    return own


def written_functions(path):
    """[(first line, last line, name)] of the functions in a C file; [] if that cannot be known."""
    if not shutil.which("ctags") or not os.path.exists(path):
        return []
    rows = common.objects(common.execute(["ctags", "--output-format=json", "--fields=+ne",
                                          "--kinds-C=f", "-f", "-", path]))
    return [(row["line"], row.get("end", row["line"]), row["name"]) for row in rows]


def by_function(own):
    """{"name (file)": own instructions}"""
    functions = collections.Counter()
    written = {source: written_functions(source) for source in {key[0] for key in own}}
    for (source, line, function), instructions in own.items():
        name = next((name for first, last, name in written[source] if first <= line <= last),
                    function)
        functions[f"{name} ({os.path.basename(source)})"] += instructions
    return functions


def count(build, peer, benchmark, size):
    command = [build / "bench" / f"overhead_{peer}", benchmark, 1, 1, size]
    if benchmark == "simulate":
        command = [build / "duet", *common.SIMULATED, "--n", 960 * size, "--policy", "ws"]
    texts = common.callgrind("--separate-threads=no", *command, OMP_NUM_THREADS="1")
    return sum(map(own_costs, texts), collections.Counter())


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--peer", default="duet", choices=["duet", "libgomp", "libomp"])
    parser.add_argument("--benchmarks", type=common.names(SIZES), default=list(SIZES),
                        metavar="LIST", help=f"of {','.join(SIZES)}")
    parser.add_argument("--functions", type=int, default=0, metavar="N")
    options = parser.parse_args()
    for benchmark in options.benchmarks:
        small, large, tasks_of = SIZES[benchmark]
        tasks = tasks_of(large) - tasks_of(small)
        tasks *= 1 if benchmark == "simulate" else REPEATS
        more = count(options.build, options.peer, benchmark, large)
        more.subtract(count(options.build, options.peer, benchmark, small))
        print(f"{benchmark:<12} {options.peer:<8} {sum(more.values()) / tasks:8.1f} "
              "instructions a task", flush=True)
        for name, own in by_function(more).most_common(options.functions):
            print(f"    {own / tasks:8.1f}  {name}")


if __name__ == "__main__":
    main()
