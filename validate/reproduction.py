#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates what papers published about Idgraf and writes the tables of docs/reproduction.md.

    validate/reproduction.py                prints what would be written
    validate/reproduction.py --write        writes it
    validate/reproduction.py --compare      prints what `duet compare` says of the first table
    validate/reproduction.py --html F.html  the same, and as a page
    validate/reproduction.py --keep FOLDER  the same, and leaves what it compares in the folder:
                                            simulated.json and published.json

The tables stand between <!-- begin NAME --> and <!-- end NAME -->; the text around them is written
by hand. `duet` is the environment's DUET, else build/duet, else the one of the PATH.
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import claims
from simulated import (FULL, LOADED, ONE_EACH, POLICIES, ROOT, SET_ARCH, bound, command, differs,
                       moved_gb, published, rate, simulate, simulate_one, table, verdict)

PAGE = ROOT / "docs" / "reproduction.md"
KERNELS = ROOT / "platforms" / "idgraf.json"

PAPERS = ("ws", "data-aware", "locality-aware", "heft")  # the policies of the papers
LARGE = 10  # percent: beyond it the page must give a reason


# ---------------------------------------------------------------------------------------------
# Published beside simulated

# Which simulation stands for a published figure, and the reasons (sections of the page) why they
# differ. Tiles of 1024 and 2048 lie beyond the measured kernels: their rates are extrapolated.
COMPARISONS = [
    (("gemm", "d", "10240"), "locality-aware", [
        (9600, 960, (*ONE_EACH, *SET_ARCH), ""),
        (10240, 2048, (*ONE_EACH, *SET_ARCH), "")]),
    (("gemm", "d", "8192"), "locality-aware", [
        (7680, 960, (*FULL, *SET_ARCH), "A, B, F"),
        (8192, 2048, (*FULL, *SET_ARCH), "B, F")]),
    (("gemm", "d", "16384"), "locality-aware", [
        (16320, 960, (*FULL, *SET_ARCH), "A, B, F"),
        (16384, 2048, (*FULL, *SET_ARCH), "B, F")]),
    (("gemm", "d", "40960"), "locality-aware", [
        (38400, 960, (*FULL, *SET_ARCH), ""),
        (40960, 2048, (*FULL, *SET_ARCH), "")]),
    (("cholesky", "d", "40960"), "locality-aware", [
        (38400, 960, (*FULL, *SET_ARCH), "C, F"),
        (40320, 960, (*FULL, *SET_ARCH), "C, F"),
        (40320, 960, FULL, "D"),
        (40960, 1024, (*FULL, *SET_ARCH), "C, F")]),
    (("cholesky", "s", "40960"), "locality-aware", [
        (38400, 960, (*FULL, *SET_ARCH), ""),
        (40320, 960, (*FULL, *SET_ARCH), ""),
        (40320, 960, FULL, "D"),
        (40960, 1024, (*FULL, *SET_ARCH), "")]),
    (("cholesky", "d", "32768"), "locality-aware", [
        (32640, 960, (*FULL, *SET_ARCH), "C, F"),
        (32640, 960, FULL, "D"),
        (32768, 1024, (*FULL, *SET_ARCH), "C, F")]),
    (("cholesky", "d", "32768"), "heft", [
        (32640, 960, (*FULL, *SET_ARCH), "C, F"),
        (32640, 960, FULL, "C, D"),
        (32768, 1024, (*FULL, *SET_ARCH), "C, F")]),
    (("lu", "d", "32768"), "locality-aware", [
        (32640, 960, (*FULL, *SET_ARCH), ""),
        (32640, 960, FULL, "D")]),
]


def published_rate(workload, precision, n, policy):
    """GFlop/s; those under heft were published as a difference."""
    value = published(workload, precision, n)["value"]
    if policy == "heft":
        value *= 1 + published(workload, precision, n, "performance",
                               "heft vs locality-aware")["value"] / 100
    return value


def machine_of(options):
    return f"{options[1]} + {options[3]}"


@functools.cache
def comparisons():
    """What is compared, in order: simulated runs, published ones at the simulated sizes (both as in
    reports of duet, docs/formats.md), and what the page says beside them."""
    simulated, real, notes = [], [], []
    for key, policy, cases in COMPARISONS:
        workload, precision, published_n = key
        value = published_rate(*key, policy)
        for n, tile, options, reasons in cases:
            run = simulate_one(policy, workload, n, tile, *options, precision=precision,
                               reps=5 if workload != "gemm" else 1)
            seconds = rate(run) * run["makespan_s"]["median"] / value
            simulated.append(run)
            real.append({key: run[key] for key in ("workload", "settings", "n", "tile", "precision",
                                                   "platform", "cpus", "gpus", "policy", "set_arch")
                         if key in run}
                        | {"world": "published", "makespan_s": {"values": [seconds]}})
            notes.append({"label": f"{published(*key)['source']}, {workload} {precision}",
                          "n": published_n, "gflops": value, "simulated_gflops": rate(run),
                          "options": options, "reasons": reasons})
    return simulated, real, notes


def compare(folder, *options):
    """What `duet compare` prints of simulated.json and published.json, which are written to the
    folder, which is made."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    names = ["simulated.json", "published.json"]
    for name, runs in zip(names, comparisons()[:2]):
        report = {"schema": 1, "command": "validate/reproduction.py", "runs": runs}
        (pathlib.Path(folder) / name).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    result = subprocess.run([os.path.abspath(command()), "compare", *names, *options], cwd=folder,
                            capture_output=True, text=True, check=False)
    if result.returncode or result.stderr:  # on standard error: a run that the other file lacks
        sys.exit(f"duet compare {' '.join(names)}: {result.stderr}")
    return result.stdout


def summary_text(result):
    """The line below the table."""
    of, cases = result["summary"], result["cases"]
    worst = max(cases, key=lambda case: abs(case["error"]))
    near = sum(abs(case["error"]) <= LARGE / 100 for case in cases)
    return (f"Absolute error of the {of['cases']} cases: median {100 * of['median']:.1f} %, "
            f"95 % of them below {100 * of['p95']:.1f} %, worst {100 * of['worst']:.1f} % "
            f"({worst['workload']}, N = {worst['n']}, {worst['policy']}, set-arch "
            f"{'yes' if worst['set_arch'] else 'no'}); {near} of them within {LARGE} %; "
            f"bias {100 * of['bias']:+.1f} %.\nPolicies: the fastest is predicted right in "
            f"{of['best_right']} of the {of['groups']} groups of cases that differ in the policy "
            "alone.")


def published_table():
    """The table, made of what `duet compare` says, and its summary."""
    with tempfile.TemporaryDirectory() as folder:
        result = json.loads(compare(folder, "--json"))
    rows = []
    for case, note in zip(result["cases"], comparisons()[2], strict=True):
        large = abs(case["error"]) > LARGE / 100
        rows.append([note["label"], note["n"], f"{note['gflops']:.0f}", case["n"],
                     f"{case['tile']}{' (extrapolated)' if case['tile'] > 960 else ''}",
                     machine_of(note["options"]), "yes" if case["set_arch"] else "no",
                     case["policy"], f"{note['simulated_gflops']:.0f}",
                     f"{case['predicted']['median_s']:.3f}", f"{case['measured']['median_s']:.3f}",
                     f"{100 * case['error']:+.1f} %",
                     (note["reasons"] or "**none given**") if large else ""])
    heading = ["published", "N", "GFlop/s", "simulated N", "tile", "CPUs + GPUs", "set-arch",
               "policy", "GFlop/s", "predicted, s", "published, s", "error", "reason"]
    return table(heading, rows) + "\n\n" + summary_text(result)


# ---------------------------------------------------------------------------------------------
# All policies

def policies_table(workload, sizes, precision="d", reps=5):
    rows = []
    for n in sizes:
        for options in (SET_ARCH, ()):
            runs = simulate(workload, n, 960, *FULL, *options, precision=precision, reps=reps)
            for policy, run in runs.items():
                sent = run["bytes"]
                rows.append([n, "yes" if options else "no", policy, f"{rate(run):.0f}",
                             f"{100 * rate(run) / bound(run):.1f}", f"{bound(run):.0f}",
                             *(f"{sent[way] / 1e9:.1f}" for way in
                               ("host_to_device", "device_to_host", "device_to_device")),
                             f"{100 * run['cache_hit_ratio']:.0f}"])
    return table(["N", "set-arch", "policy", "GFlop/s", "% of area bound", "area bound, GFlop/s",
                  "to GPU, GB", "to host, GB", "GPU-GPU, GB", "hits, %"], rows)


def rates(runs):
    """A column for each policy, and the bound."""
    return [*(f"{rate(run):.0f}" for run in runs.values()), f"{bound(runs['ws']):.0f}"]


def scaling_table():
    rows = []
    for options in (SET_ARCH, ()):
        for gpus in range(1, 9):
            machine = ("--cpus", 12 - gpus, "--gpus", gpus)
            rows.append(["yes" if options else "no", machine_of(machine),
                         *rates(simulate("cholesky", 38400, 960, *machine, *options))])
    return table(["set-arch", "CPUs + GPUs", *POLICIES, "area bound"], rows)


def gemm_table():
    cases = [(n, 960, FULL) for n in (7680, 8640, 15360, 16320, 38400)]
    cases.append((9600, 960, ONE_EACH))
    cases += [(n, 2048, FULL) for n in (8192, 16384, 40960)]
    rows = [[n, tile, machine_of(machine), *rates(simulate("gemm", n, tile, *machine, *SET_ARCH))]
            for n, tile, machine in cases]
    return table(["N", "tile", "CPUs + GPUs", *POLICIES, "area bound"], rows)


# ---------------------------------------------------------------------------------------------
# What a difference may come from

WHAT_IF = [
    ("as above", ()),
    ("runtime operations free", ("--no-costs",)),
    ("1 ms for each kernel launch", ("--costs", "kernel-launch=1ms")),
    ("100 us for each submission", ("--costs", "submit=100us")),
    ("kernel times drawn (`--noise`)", ("--noise",)),
    ("POTRF anywhere", ("--param", "potrf=any")),
    ("500 tasks submitted ahead, right-looking", ("--window", 500)),
    ("500 tasks submitted ahead, left-looking", ("--window", 500, "--param", "variant=left")),
    ("no direct GPU-GPU copies", ("--no-peer",)),
    ("copies chosen with regard to those under way", (LOADED,)),
    ("one task a GPU (`--gpu-window 1`)", ("--gpu-window", 1)),
]
LINKS = (None, 4, 3, 2, 1.5)


def slower(link):
    """Options for links of so many GB/s; None: as measured."""
    return () if link is None else ("--link", f"pcie={link}GB/s")


def problem(options, policies=PAPERS, reps=5):
    return simulate("cholesky", 40320, 960, *FULL, *SET_ARCH, *options, policies=policies,
                    reps=reps)


def spread(run):
    """Lowest and highest rate of the runs."""
    makespans = run["makespan_s"]
    rates = [rate(run) * makespans["median"] / value for value in makespans["values"]]
    return f"{min(rates):.0f} to {max(rates):.0f}"


def gains(options):
    """GFlop/s with and without overlap of copies and kernels, by policy."""
    both, alone = (problem((*options, *more), policies=("ws", "locality-aware"), reps=3)
                   for more in ((), ("--gpu-window", 1)))
    return {policy: (rate(both[policy]), rate(alone[policy])) for policy in both}


def what_if_table():
    base = problem(())
    rows = []
    for label, options in WHAT_IF:
        runs = problem(options)
        cells = [f"{rate(runs[p]):.0f} ({differs(rate(base[p]), rate(runs[p])):+.1f} %)"
                 if options else f"{rate(runs[p]):.0f}" for p in PAPERS]
        rows.append([label, *cells])
        if not options:
            rows.append(["lowest to highest of 5 seeds", *(spread(base[p]) for p in PAPERS)])
    return table(["Cholesky d, N = 40320, set-arch", *PAPERS], rows)


def overlap_table():
    rows = [["published", policy, total, "",
             f"{published('cholesky', 'd', 40960, 'overlap gain', policy)['value']:.0f}"]
            for policy, total in (("ws", ""), ("locality-aware", "1790"))]
    for peers in ((), ("--no-peer",)):
        for link in LINKS:
            label = ", ".join(["measured links" if link is None else f"links of {link} GB/s",
                               "through the host" if peers else "GPU-GPU copies"])
            for policy, (with_overlap, without) in gains((*slower(link), *peers)).items():
                rows.append([label, policy, f"{with_overlap:.0f}", f"{without:.0f}",
                             f"{with_overlap - without:.0f}"])
    return table(["machine", "policy", "overlap", "no overlap", "gain, GFlop/s"], rows)


LINKS_TO_HOST_BPS = 4 * 6.5e9  # of Idgraf: four switches


def missing_row(workload, precision, n, tile, result_bytes):
    """Seconds that the published run took longer than the simulated one."""
    row = published(workload, precision, n)
    run = simulate_one("locality-aware", workload, n, tile, *FULL, *SET_ARCH, precision=precision)
    simulated = run["makespan_s"]["median"]
    seconds = rate(run) * simulated / row["value"]
    return [f"{row['source']}, {workload} {precision}", n, tile, f"{seconds:.2f}",
            f"{simulated:.2f}", f"{seconds - simulated:.2f}",
            f"{1e3 * (seconds - simulated) * 8 / run['tasks']:.2f}",
            f"{result_bytes / LINKS_TO_HOST_BPS:.2f}"]


def missing_table():
    rows = [missing_row("gemm", "d", n, 2048, 8 * n * n) for n in (8192, 16384, 40960)]
    rows += [missing_row("cholesky", precision, n, 1024, size * n * (n + 1024) // 2)
             for precision, n, size in (("d", 32768, 8), ("d", 40960, 8), ("s", 40960, 4))]
    return table(["published", "N", "tile", "published, s", "simulated, s", "missing, s",
                  "ms a task of a GPU", "all results to the host, s"], rows)


def kernel_events(options, policy):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        run = simulate_one(policy, "cholesky", 40320, 960, *FULL, *options, "--trace", path)
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return run, [e for e in events if e["ph"] == "X" and e["cat"] == "kernel"]


def waits_table():
    rows = []
    for options in ((), ("--param", "potrf=any"), SET_ARCH):
        for policy in PAPERS:
            run, events = kernel_events(options, policy)
            waits = [e["ts"] - e["args"]["ready_us"] for e in events if e["name"] == "dpotrf"]
            gemms = sum(e["name"] == "dgemm" and e["pid"] == 1 for e in events)
            rows.append([f"`{' '.join(options)}`" if options else "-", policy, f"{rate(run):.0f}",
                         gemms, f"{sum(waits) / len(waits) / 1e3:.0f}", f"{sum(waits) / 1e6:.1f}"])
    return table(["options", "policy", "GFlop/s", "GEMMs on CPUs",
                  "a ready POTRF waits, ms", "all 42, s"], rows)


# One bandwidth for all links, or a limit where they meet, beside the published figures that it
# should meet.
NO_PEER = ("--no-peer",)
LIMITS = [("hub", 12, ()), ("hub", 10, ()), ("hub", 8, ()), ("hub", 4, ()), ("host", 16, ()),
          ("host", 12, ()), ("host", 8, ()), ("hub", 8, NO_PEER), ("hub", 4, NO_PEER),
          ("hub", 3, NO_PEER), ("host", 8, NO_PEER)]
LINK_CASES = [("gemm", "d", 8192, 2048), ("gemm", "d", 16384, 2048), ("gemm", "d", 40960, 2048),
              ("cholesky", "d", 32768, 1024), ("cholesky", "d", 40960, 1024),
              ("cholesky", "s", 40960, 1024)]


def links_row(label, *options, platform="idgraf"):
    cells = []
    for workload, precision, n, tile in LINK_CASES:
        run = simulate_one("locality-aware", workload, n, tile, *FULL, *SET_ARCH, *options,
                           precision=precision, platform=platform)
        value = published(workload, precision, n)["value"]
        cells.append(f"{rate(run):.0f} ({differs(value, rate(run)):+.0f} %)")
    heft = heft_differs(32768, 1024, *SET_ARCH, *options, platform=platform)
    return [label, *cells, f"{heft:+.0f} %"]


def heft_differs(n, tile, *options, policies=("locality-aware", "heft"), reps=1, platform="idgraf"):
    """Percent by which heft is faster than locality-aware."""
    runs = simulate("cholesky", n, tile, *FULL, *options, policies=policies, reps=reps,
                    platform=platform)
    return differs(rate(runs["locality-aware"]), rate(runs["heft"]))


def link_cases_table(first, rows):
    values = [f"{published(*case[:3])['value']:.0f}" for case in LINK_CASES]
    heading = [f"{w} {p}, {n}" for w, p, n, tile in LINK_CASES]
    return table([first, *heading, "heft, cholesky d, 32768"],
                 [["published", *values, "-5 %"], *rows])


def links_table():
    rows = [links_row("as measured alone" if link is None else f"{link} GB/s", *slower(link))
            for link in (None, 4, 3, 2.5, 2, 1.5)]
    return link_cases_table("links", rows)


def limited(folder, where, gbps):
    """A file of Idgraf whose hubs, or host, pass so much each way and no more."""
    machine = json.loads(KERNELS.read_text(encoding="utf-8"))
    limits = {"to_device_Bps": gbps * 1e9, "to_host_Bps": gbps * 1e9}
    if where == "hub":
        for socket in machine["sockets"]:
            socket["hub"] = limits | {"origin": "what if"}
    else:
        machine["host"] |= limits
    path = pathlib.Path(folder) / f"{where}{gbps}.json"
    path.write_text(json.dumps(machine), encoding="utf-8")
    return str(path)


def limits_table():
    """Limits of hubs and of the host, which nobody is known to have measured."""
    rows = [links_row("none")]
    with tempfile.TemporaryDirectory() as folder:
        for where, gbps, peers in LIMITS:
            label = f"{gbps} GB/s a hub" if where == "hub" else f"{gbps} GB/s the host"
            rows.append(links_row(label + (", no direct copies" if peers else ""), *peers,
                                  platform=limited(folder, where, gbps)))
    return link_cases_table("limit each way", rows)


# ---------------------------------------------------------------------------------------------
# Kernels and the order of policies

def at_tile(kernel, arch, tile=960):
    curves = json.loads(KERNELS.read_text(encoding="utf-8"))["curves"]
    points = next(c["points"] for c in curves if (c["kernel"], c["arch"]) == (kernel, arch))
    return next(point for point in points if point["size"] == tile)


def kernels_table():
    rows = []
    tiles = 40320 // 960
    counts = {"gemm": tiles * (tiles - 1) * (tiles - 2) // 6, "trsm": tiles * (tiles - 1) // 2,
              "syrk": tiles * (tiles - 1) // 2, "potrf": tiles}
    for precision in "ds":
        work = {k: n * at_tile(precision + k, "c2050")["mean_s"] / 8
                for k, n in counts.items() if k != "potrf"}
        for kernel, count in counts.items():
            gpu = at_tile(precision + kernel, "c2050")
            cpu = at_tile(precision + kernel, "x5650")
            share = work.get(kernel)
            rows.append([f"{precision}{kernel}", count, f"{1e3 * cpu['mean_s']:.1f}",
                         f"{cpu['flops'] / cpu['mean_s'] / 1e9:.1f}",
                         f"{1e3 * gpu['mean_s']:.2f}",
                         f"{gpu['flops'] / gpu['mean_s'] / 1e9:.0f}",
                         f"{cpu['mean_s'] / gpu['mean_s']:.1f}",
                         "-" if share is None else f"{share:.2f}"])
    return table(["kernel, tile 960", "tasks", "CPU core, ms", "GFlop/s", "GPU, ms", "GFlop/s",
                  "ratio", "seconds of 8 GPUs"], rows)


def gemm_check():
    runs = simulate("gemm", 38400, 960, *FULL, *SET_ARCH, policies=PAPERS)
    three = [rate(runs[p]) for p in ("ws", "data-aware", "locality-aware")]
    apart = 100 * (max(three) - min(three)) / max(three)
    return ["IPDPS13: GEMM runs alike under ws, data-aware and locality-aware",
            f"they are within {apart:.1f} %", verdict(apart < 2)]


def overlap_checks():
    for options in ((), ("--link", "pcie=1.5GB/s")):
        gain = {policy: with_overlap - without
                for policy, (with_overlap, without) in gains(options).items()}
        where = "links of 1.5 GB/s" if options else "measured links"
        yield [f"IPDPS13: overlap gains locality-aware more than ws ({where})",
               f"{gain['locality-aware']:.0f} against {gain['ws']:.0f} GFlop/s",
               verdict(gain["locality-aware"] > gain["ws"])]


def heft_checks():
    for label, options in (("set-arch", SET_ARCH), ("no set-arch", ()),
                           ("set-arch, no direct GPU-GPU copies", (*SET_ARCH, "--no-peer"))):
        difference = heft_differs(32640, 960, *options, policies=PAPERS, reps=5)
        yield [f"PARCO15: heft is 4.51 % below locality-aware ({label})",
               f"{difference:+.1f} %", verdict(difference < 0)]


def traffic_check():
    runs = problem(())
    order = sorted(PAPERS, key=lambda p: moved_gb(runs[p]))
    text = " < ".join(f"{p} {moved_gb(runs[p]):.0f}" for p in order)
    return ["H1 and H2 exist to move less data than ws", f"{text} GB",
            verdict(order.index("ws") > max(order.index("data-aware"),
                                            order.index("locality-aware")))]


def order_table():
    rows = [gemm_check(), *overlap_checks(), *heft_checks(), traffic_check()]
    return table(["published", "simulated", "holds"], rows)


def blocks():
    """Every generated part of the page, by name."""
    return {
        "published": published_table(),
        "kernels": kernels_table(),
        "cholesky-double": policies_table("cholesky", (38400, 40320)),
        "scaling": scaling_table(),
        "cholesky-single": policies_table("cholesky", (38400, 40320), "s"),
        "gemm": gemm_table(),
        "lu": policies_table("lu", (32640,), reps=1),
        "missing": missing_table(),
        "what-if": what_if_table(),
        "waits": waits_table(),
        "overlap": overlap_table(),
        "links": links_table(),
        "limits": limits_table(),
        "order": order_table(),
        **claims.blocks(),
    }


def filled(page, parts):
    """The page with each part between its marks."""
    for name, text in parts.items():
        begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            sys.exit(f"{PAGE}: the marks of '{name}' must each be there once")
        head, rest = page.split(begin)
        page = head + begin + text + end + rest.split(end)[1]
    return page


def put(path, parts, write):
    """Writes the parts into the page, or prints what that would be."""
    fresh = filled(path.read_text(encoding="utf-8"), parts)
    if write:
        path.write_text(fresh, encoding="utf-8")
    else:
        print(fresh, end="")


def arguments():
    parser = argparse.ArgumentParser(description="The tables of docs/reproduction.md.")
    parser.add_argument("--write", action="store_true", help="write them into the page")
    parser.add_argument("--compare", action="store_true",
                        help="print what duet compare says of the first table instead")
    parser.add_argument("--html", metavar="F.html", help="the same, and as a page")
    parser.add_argument("--keep", metavar="FOLDER", help="the same, and leave what it compares")
    return parser.parse_args()


def main():
    wanted = arguments()
    if wanted.compare or wanted.html or wanted.keep:
        page = ("--html", os.path.abspath(wanted.html)) if wanted.html else ()
        with tempfile.TemporaryDirectory() as folder:
            print(compare(wanted.keep or folder, *page), end="")
        return
    put(PAGE, blocks(), wanted.write)


if __name__ == "__main__":
    main()
