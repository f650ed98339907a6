#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the kernels of the catalogue of devices, devices/catalogue.json, to measured times.

A kernel of w flops on a device of peak P would take tau = w / P at the peak; it takes

    start + tau / share * (1 + (half_s / tau) ** (2 / 3))

where `share` is the part of the peak that large tiles reach, and a tile reaches half of it that
would take `half_s` at the peak. On square tiles the second term is proportional to the edge: what
fills a device, and chains of what depends on each other, do not grow as the flops do. So a faster
device needs larger tiles, by the cube root of its peak. Both are fitted to what the built-in
platforms idgraf and sirocco measured and to the rates of published.csv; kernels without times have
a share of the rate of gemm, as import_refs.py assumes it. Kernels on vectors stay as they are.

A device (and those of the same peaks) whose gemm is among these has a ratio in each precision, of
its own share of the peak to that of all, by which all its kernels on matrices are faster.
"""

import csv
import functools
import json
import math
import pathlib
from collections import namedtuple
from statistics import fmean, median

from import_refs import SHARES, significant

FOLDER = pathlib.Path(__file__).resolve().parent
CATALOGUE = FOLDER / "devices" / "catalogue.json"
EXPONENT = 2 / 3


# A measured time: the device's peaks and precision (equal for devices that are alike); seconds at
# the peak, from the launch to the begin, and measured; device; whether it is of published.csv.
Point = namedtuple("Point", "peaks tau start mean device published")


def peaks(device, precision):
    """Flops a second of products of matrices by one core of a CPU, in this precision and in either;
    and the precision."""
    if "cores" in device:
        double = device["clock_Hz"] * device["flops_per_cycle"]
        found = {"d": double, "s": 2 * double}
    else:
        found = {either: device.get(either + "_matrix_flops", device[either + "_flops"])
                 for either in "ds"}
    return found[precision], found["d"], found["s"], precision


def measured(catalogue, kind):
    """The measured points of each kernel."""
    points = {}
    start = catalogue["rules"]["gpu_start_s"] if kind == "gpu" else 0
    devices = {device["name"]: device for device in catalogue["devices"]
               if ("cores" in device) == (kind == "cpu")}

    def add(kernel, device, flops, mean, is_published):
        alike = peaks(devices[device], kernel[0])
        points.setdefault(kernel[1:], []).append(
            Point(alike, flops / alike[0], start, mean, device, is_published))

    for platform in ("idgraf", "sirocco"):
        for curve in json.loads((FOLDER / f"{platform}.json").read_text("utf-8"))["curves"]:
            for point in curve["points"]:
                if (curve["arch"] in devices and point["size"]
                        and not curve["origin"].startswith("estimated")):
                    add(curve["kernel"], curve["arch"], point["flops"], point["mean_s"], False)
    shapes = {kernel["kernel"]: kernel for kernel in catalogue["kernels"]}
    with open(FOLDER / "published.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["metric"] == "kernel rate" and row["machine"] in devices:
                shape, size = shapes[row["workload"]], int(row["n"])
                flops = sum(shape.get(f"b{power}", 0) * size ** power for power in (1, 2, 3))
                add(row["precision"] + row["workload"], row["machine"], flops,
                    flops / float(row["value"]) / 1e9, True)
    return points


def middles(points, ratios, half):
    """For each group of alike devices the median of log(time / that at the peak), and the
    deviations."""
    logs = {}
    for point in points:
        at_peak = point.tau * (1 + (half / point.tau) ** EXPONENT) / ratios.get(point.peaks, 1)
        logs.setdefault(point.peaks, []).append(math.log((point.mean - point.start) / at_peak))
    found = {group: median(values) for group, values in logs.items()}
    return found, sum(abs(value - found[group]) for group in logs for value in logs[group])


def fit(points, ratios, per_decade=150):
    """Least absolute errors of logarithms, as some times are far off. The shape is that within
    alike devices, so that one which is slower for all sizes does not bend it; the share is a
    geometric mean."""
    best = None
    for step in range(8 * per_decade):
        half = 1e-9 * 10 ** (step / per_decade)
        found, error = middles(points, ratios, half)
        if fmean(found.values()) >= 0 and (best is None or error < best[0]):
            best = error, {"share": significant(math.exp(-fmean(found.values())), 3),
                           "half_s": significant(half, 3)}
    return best[1]


@functools.cache
def ratios_of(gemm):
    """For each group the ratio of its own share in products of matrices to that of all."""
    all_of_them = fit(gemm, {})
    found, _ = middles(gemm, {}, all_of_them["half_s"])
    return {group: significant(math.exp(-value) / all_of_them["share"], 3)
            for group, value in found.items()}


def fitted_devices(catalogue):
    """The devices, with the ratios of their peaks."""
    ratios = {}
    for kind in ("cpu", "gpu"):
        ratios |= ratios_of(tuple(measured(catalogue, kind)["gemm"]))
    for device in catalogue["devices"]:
        yield {key: value for key, value in device.items() if not key.endswith("_ratio")} | {
            f"{precision}_ratio": ratios[peaks(device, precision)]
            for precision in "ds" if peaks(device, precision) in ratios}


def fitted_kernels(catalogue):
    """The kernels of the catalogue, fitted to measured times."""
    times = {kind: measured(catalogue, kind) for kind in ("cpu", "gpu")}
    ratios = {kind: ratios_of(tuple(times[kind]["gemm"])) for kind in times}
    for kernel in catalogue["kernels"]:
        name, kind = kernel["kernel"], kernel["on"]
        shares = SHARES.get("getrf_incpiv" if name == "getrf" else name)
        if name in times[kind]:
            points = times[kind][name]
            origin = "fitted to " + ", ".join(sorted({point.device for point in points}))
            yield {**kernel, **fit(points, {} if name == "gemm" else ratios[kind]),
                   "origin": origin}
        elif shares:
            gemm, share = fit(times[kind]["gemm"], {}), shares["cpu" if kind == "cpu" else "cuda"]
            yield {**kernel, "half_s": gemm["half_s"],
                   "share": significant(share * gemm["share"], 3),
                   "origin": f"assumed: {share:g} of the rate of gemm"}
        else:
            yield kernel


def main():
    text = CATALOGUE.read_text("utf-8")
    catalogue = json.loads(text)
    start, _, _ = text.partition('  "devices": [\n')
    CATALOGUE.write_text(start + ",\n".join(
        f'  "{key}": [\n    ' + ",\n    ".join(json.dumps(line) for line in lines) + "\n  ]"
        for key, lines in (("devices", fitted_devices(catalogue)),
                           ("kernels", fitted_kernels(catalogue)))) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
