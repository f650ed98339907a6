#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills platform files with the figures of tables of published measurements.

    import_refs.py --kernels kernels.csv --bus bus.csv PLATFORM.json...

What a file says of its machine stays: processors, which GPUs share a switch, costs, origins.
Figures of links, switches, GPUs and direct copies, and kernel times are those of the tables. What
nobody has measured on these machines has estimated times, which say so.

kernels.csv: machine,kernel,precision,tile,arch,device,impl,bytes,flops,mean_us,dev_us,samples,note
bus.csv:     machine,src,dst,bandwidth_MBps,latency_us    (MB = 10^6 bytes)

README.md beside this file says which rows are used, and why.
"""

import argparse
import csv
import itertools
import json
import math
from collections import defaultdict
from statistics import median

STARPU = "StarPU performance models, commit 3f3cc82"
CHAMELEON = "Chameleon 0.9.1 performance models"
# A GPU gets a limit of its own where its figure is this much below its switch's.
LIMIT_SHARE = 0.005

# Kernels, by LAPACK's operation counts (LAWN 41) for a square tile of edge b.
FLOPS = {
    "gemm": lambda b: 2 * b**3,
    "trsm": lambda b: b**3,
    "trsm_l": lambda b: b**3,
    "trsm_r": lambda b: b**3,
    "syrk": lambda b: b * b * (b + 1),
    "potrf": lambda b: (2 * b**3 + 3 * b * b + b) // 6,
    "getrf_nopiv": lambda b: (4 * b**3 - 3 * b * b - b) // 6,
    "geqrt": lambda b: (4 * b**3 + 6 * b * b + 14 * b) // 3,
    "ormqr": lambda b: 2 * b**3 + 3 * b * b,
    "tsqrt": lambda b: 2 * b**3,
    "tsmqr": lambda b: 4 * b**3,
    "getrf_incpiv": lambda b: (4 * b**3 - 3 * b * b - b) // 6,
    "gessm": lambda b: b**3,
    "tstrf": lambda b: b**3,
    "ssssm": lambda b: 2 * b**3,
}

# The table of each kernel. Chameleon's are mirage's; StarPU's are each machine's own.
SOURCES = {
    "dgemm": "starpu_dlu_lu_model_gemm",
    "dpotrf": "chameleon_dpotrf",
    "dtrsm": "chameleon_dtrsm",
    "dsyrk": "chameleon_dsyrk",
    "sgemm": "chol_model_gemm",
    "spotrf": "chol_model_potrf",
    "strsm": "chol_model_trsm",
    "ssyrk": "chameleon_ssyrk",
    "dgetrf_nopiv": "starpu_dlu_lu_model_getrf",
    "dtrsm_l": "starpu_dlu_lu_model_trsm_ll",
    "dtrsm_r": "starpu_dlu_lu_model_trsm_ru",
    "sgetrf_nopiv": "starpu_slu_lu_model_getrf",
    "strsm_l": "starpu_slu_lu_model_trsm_ll",
    "strsm_r": "starpu_slu_lu_model_trsm_ru",
}
# Products of rectangular matrices, for works beyond the largest square tile. sgemm has none: most
# rows of starpu_sgemm_gemm are one measurement rescaled, and nobody knows which.
RECTANGULAR = {"dgemm": "starpu_dgemm_gemm"}
# Kernels that no table has, and their share of the rate of gemm on the same tile, estimated: on a
# CPU updates come near it and panels half-way; of a GPU panels get little. Agullo et al., "QR
# factorization on a multicore node enhanced with multiple GPU accelerators", IPDPS 2011, find the
# same on other GPUs.
SHARES = {
    "geqrt": {"cpu": 0.6, "cuda": 0.2},
    "ormqr": {"cpu": 0.7, "cuda": 0.75},
    "tsqrt": {"cpu": 0.7, "cuda": 0.2},
    "tsmqr": {"cpu": 0.75, "cuda": 0.9},
    # less than others, as interchanges of rows read and write what lies far apart
    "getrf_incpiv": {"cpu": 0.5, "cuda": 0.15},
    "gessm": {"cpu": 0.7, "cuda": 0.6},
    "tstrf": {"cpu": 0.5, "cuda": 0.1},
    "ssssm": {"cpu": 0.7, "cuda": 0.75},
}
# Same chips as mirage: its kernels may stand in.
LIKE_MIRAGE = {"idgraf", "attila", "mirage"}

# Figures where no measurement is known. Sorting a list of m elements by odd-even transposition: a
# core needs 1 ns for each of m (m - 1) / 2 pairs; a device launches a kernel for each of m rounds,
# which reads and writes the whole list: (seconds, bytes a second).
PAIR_S = 1e-9
ROUNDS = {"c2050": (4e-6, 110e9), "m2070": (4e-6, 110e9), "fx5800": (7e-6, 75e9)}
# Flops a second of a step of bodies, of 20 flops a pair: a quarter of the peak in double precision,
# for square roots and divisions, in single precision half of it on GPUs.
PEAKS = {"x5650": {"d": 10.7e9, "s": 21.4e9}, "c2050": {"d": 515e9, "s": 1030e9},
         "m2070": {"d": 515e9, "s": 1030e9}, "fx5800": {"d": 78e9, "s": 622e9}}
STARTS = {"x5650": 0}  # seconds of a call; of other architectures:
START_S = 20e-6


def nbody_curve(arch, precision):
    part = 2 if precision == "s" and arch != "x5650" else 4
    rate, start_s = PEAKS[arch][precision] / part, STARTS.get(arch, START_S)
    return {"kernel": precision + "nbody", "arch": arch,
            "origin": f"estimated: 1/{part} of the peak, {start_s * 1e6:g} us to start",
            "points": [estimated_point(flops, start_s + flops / rate)
                       for flops in (20 * 4**k for k in range(23))]}


def sort_seconds(arch, element_bytes, length):
    if arch not in ROUNDS:
        return PAIR_S * length * (length - 1) / 2
    launch_s, bandwidth = ROUNDS[arch]
    return length * (launch_s + 2 * element_bytes * length / bandwidth)


def estimated_curves(arch):
    """Estimated curves of an architecture whose speed is known well enough."""
    if arch not in PEAKS:
        return []
    origin = ("estimated: 1 ns a pair" if arch not in ROUNDS else
              "estimated: {} us a round to launch it, {} GB/s".format(
                  *(f"{value:g}" for value in (ROUNDS[arch][0] * 1e6, ROUNDS[arch][1] * 1e-9))))
    return [{"kernel": precision + "sort", "arch": arch, "origin": origin,
             "points": [estimated_point(length * (length - 1) // 2,
                                        sort_seconds(arch, element_bytes, length))
                        for length in (2**k for k in range(1, 21))]}
            for precision, element_bytes in (("d", 8), ("s", 4))] + [
                nbody_curve(arch, precision) for precision in "ds"]


def estimated_point(flops, seconds, size=0):
    return {"size": size, "flops": flops, "mean_s": significant(seconds),
            "deviation_s": significant(0.02 * seconds), "samples": 1}


def significant(value, digits=7):
    """Rounds to a number of digits that the measurements do not exceed."""
    return float(f"{value:.{digits - 1}e}")


def read_kernels(path):
    """Rows by (machine, table, arch); rows that are not measurements are left out."""
    rows = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["note"].startswith("derived"):
                rows[row["machine"], row["kernel"], row["arch"]].append(row)
    return {key: without_copies(group) for key, group in rows.items()}


def without_copies(rows):
    """Drops rows that repeat another under a scale or for another device.

    A row whose samples and relative deviation equal another's (to the six digits printed) is one
    measurement written twice: the table's larger square tile, or lower device, is the original.
    """
    kept = []
    for row in sorted(rows, key=lambda r: (-int(r["tile"] or 0), int(r["device"]),
                                           -int(r["bytes"]))):
        ratio = float(row["dev_us"]) / float(row["mean_us"])
        if not any(row["samples"] == other["samples"] and math.isclose(
                ratio, float(other["dev_us"]) / float(other["mean_us"]), rel_tol=3e-6)
                   for other in kept):
            kept.append(row)
    return kept


def pooled(rows):
    """Mean, deviation (including that between devices) and samples of one point, in seconds."""
    samples = sum(int(r["samples"]) for r in rows)
    mean = sum(int(r["samples"]) * float(r["mean_us"]) for r in rows) / samples
    variance = sum(
        int(r["samples"]) * (float(r["dev_us"]) ** 2 + (float(r["mean_us"]) - mean) ** 2)
        for r in rows) / samples
    return {
        "mean_s": significant(mean * 1e-6),
        "deviation_s": significant(math.sqrt(variance) * 1e-6),
        "samples": samples,
    }


def square_points(kernel, rows):
    tiles = defaultdict(list)
    for row in rows:
        if row["tile"]:
            tiles[int(row["tile"])].append(row)
    points = []
    for tile, group in sorted(tiles.items()):
        points.append({"size": tile, "flops": FLOPS[kernel[1:]](tile), **pooled(group)})
    # A larger tile cannot be faster: of two points that say so, the one with fewer samples goes.
    i = 1
    while i < len(points):
        if points[i]["mean_s"] <= points[i - 1]["mean_s"]:
            del points[i if points[i]["samples"] < points[i - 1]["samples"] else i - 1]
            i = max(i - 1, 1)
        else:
            i += 1
    return points


def rectangular_points(table, rows, points):
    """Products larger than the largest tile, as long as the rate does not fall."""
    works = defaultdict(list)
    for row in rows:
        works[int(float(row["flops"])), int(row["bytes"])].append(row)
    added = []
    for (flops, size), group in sorted(works.items()):
        point = {"size": 0, "flops": flops, **pooled(group),
                 "origin": f"{table}, rectangular product, {size} bytes"}
        last = (points + added)[-1]
        if flops > last["flops"] and flops / point["mean_s"] >= last["flops"] / last["mean_s"]:
            added.append(point)
    return added


def curves_of(platform, rows):
    machine = platform["name"]
    curves = []
    for kernel, table in SOURCES.items():
        chameleon = table.startswith("chameleon")
        owner = "mirage" if chameleon and machine in LIKE_MIRAGE else machine
        for arch in platform["architectures"]:
            backend = arch["backend"]
            points = square_points(kernel, rows.get((owner, table, backend), []))
            if not points:
                continue
            if kernel in RECTANGULAR:
                wide = RECTANGULAR[kernel]
                points += rectangular_points(wide, rows.get((machine, wide, backend), []), points)
            origin = f"measured on {owner}, {table} ({CHAMELEON if chameleon else STARPU})"
            if owner != machine:
                origin += "; same chips as " + machine
            curves.append({"kernel": kernel, "arch": arch["name"], "origin": origin,
                           "points": points})
    return curves + shared_curves(platform, curves) + [
        curve for arch in platform["architectures"] for curve in estimated_curves(arch["name"])]


def shared_curves(platform, measured):
    """Curves of kernels that have a share of gemm's rate, for square tiles."""
    backends = {arch["name"]: arch["backend"] for arch in platform["architectures"]}
    gemms = [curve for curve in measured if curve["kernel"][1:] == "gemm"]
    curves = []
    for (kernel, shares), gemm in itertools.product(SHARES.items(), gemms):
        share = shares.get(backends[gemm["arch"]])
        points = [(point["size"], FLOPS[kernel](point["size"]), point["flops"] / point["mean_s"])
                  for point in gemm["points"] if point["size"] and share]
        if points:
            curves.append({"kernel": gemm["kernel"][0] + kernel, "arch": gemm["arch"],
                           "origin": f"estimated: {share:g} of the rate of {gemm['kernel']}",
                           "points": [estimated_point(flops, flops / share / rate, size)
                                      for size, flops, rate in points]})
    return curves


def read_bus(path):
    """(machine, source, destination) -> (bytes per second, seconds)."""
    with open(path, newline="", encoding="utf-8") as file:
        return {(r["machine"], r["src"], r["dst"]):
                (float(r["bandwidth_MBps"]) * 1e6, float(r["latency_us"]) * 1e-6)
                for r in csv.DictReader(file)}


def figure(bandwidths, latencies, pick):
    return {"bandwidth_Bps": significant(pick(bandwidths)),
            "latency_s": significant(pick(latencies))}


def mean(values):
    return sum(values) / len(values)


def peers_of(platform, bus):
    """Mean figures of each reach, apart for each direction (up: to the higher device number)."""
    machine = platform["name"]
    home = {g: (switch["socket"], i) for i, switch in enumerate(platform["switches"])
            for g in switch["gpus"]}
    found = defaultdict(lambda: {"up": [], "down": []})
    for a, b in itertools.permutations(home, 2):
        reach = ("switch" if home[a] == home[b] else
                 "socket" if home[a][0] == home[b][0] else "remote")
        found[reach]["up" if a < b else "down"].append(bus[machine, f"gpu{a}", f"gpu{b}"])
    return [{"name": "peer_" + reach, "reach": reach,
             **{way: figure(*zip(*values), mean) for way, values in found[reach].items()},
             "origin": f"mean of the pairs measured alone on {machine} ({STARPU})"}
            for reach in ("switch", "socket", "remote") if reach in found]


def fill(platform, bus):
    """Sets the figures of copies: a switch is as fast as the best of its GPUs."""
    machine, gpus = platform["name"], platform["gpus"]
    link, = platform["links"]
    for way in ("to_device", "to_host"):
        figures = [bus[(machine, "host", f"gpu{i}") if way == "to_device" else
                       (machine, f"gpu{i}", "host")] for i in range(len(gpus))]
        link[way] = figure(*zip(*figures), median)
        for switch in platform["switches"]:
            best = max(figures[i][0] for i in switch["gpus"])
            switch[way + "_Bps"] = significant(best)
            for i in switch["gpus"]:
                gpus[i][way + "_latency_s"] = significant(figures[i][1])
                if figures[i][0] < (1 - LIMIT_SHARE) * best:
                    gpus[i][way + "_limit_Bps"] = significant(figures[i][0])
                else:
                    gpus[i].pop(way + "_limit_Bps", None)
    platform["peers"] = peers_of(platform, bus)


def write(path, value):
    """Writes a line for each element of an array of objects, short to read and to compare, and for
    each estimated curve."""
    def text(item, depth):
        pad = "  " * depth
        if depth == 2 and item.get("origin", "").startswith("estimated"):
            return json.dumps(item)
        if isinstance(item, list) and item and isinstance(item[0], dict):
            lines = [pad + "  " + text(element, depth + 1) for element in item]
            return "[\n" + ",\n".join(lines) + "\n" + pad + "]"
        if isinstance(item, dict) and (depth == 0 or "points" in item):
            lines = [f'{pad}  "{key}": {text(element, depth + 1)}' for key, element in item.items()]
            return "{\n" + ",\n".join(lines) + "\n" + pad + "}"
        return json.dumps(item)

    with open(path, "w", encoding="utf-8") as file:
        file.write(text(value, 0) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--bus", required=True)
    parser.add_argument("platforms", nargs="+")
    args = parser.parse_args()
    rows = read_kernels(args.kernels)
    bus = read_bus(args.bus)
    for path in args.platforms:
        with open(path, encoding="utf-8") as file:
            platform = json.load(file)
        fill(platform, bus)
        platform["curves"] = curves_of(platform, rows)
        write(path, platform)


if __name__ == "__main__":
    main()
