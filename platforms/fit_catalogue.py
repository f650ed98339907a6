#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the kernels of the catalogue of devices, devices/catalogue.json, to measured times.

A kernel of w flops on a device of peak P would take tau = w / P at the peak; it takes

    start + tau / share * (1 + (half_s / tau) ** (2 / 3))

where `share` is the part of the peak that large tiles reach, and a tile reaches half of it that
would take `half_s` at the peak. On square tiles the second term is proportional to the edge: what
fills a device, and chains of what depends on each other, do not grow as the flops do. So a faster
device needs larger tiles, by the cube root of its peak. Both are fitted to what the built-in
platforms idgraf and sirocco measured; kernels without times have a share of the rate of gemm, as
import_refs.py assumes it. Kernels on vectors stay as they are.
"""

import json
import math
import pathlib
from statistics import fmean, median

from import_refs import SHARES, significant

FOLDER = pathlib.Path(__file__).resolve().parent
CATALOGUE = FOLDER / "devices" / "catalogue.json"
MEASURED = {"cpu": ["x5650", "e5-2680v3"], "gpu": ["c2050", "k40m"]}
EXPONENT = 2 / 3


def seconds(kernel, start, tau):
    """What a kernel with `share` and `half_s` takes that would take tau at the peak."""
    return start + tau / kernel["share"] * (1 + (kernel["half_s"] / tau) ** EXPONENT)


def peak(device, precision):
    """Flops a second: of products of matrices, of one core of a CPU."""
    if "cores" in device:
        return device["clock_Hz"] * device["flops_per_cycle"] * (2 if precision == "s" else 1)
    return device.get(precision + "_matrix_flops", device[precision + "_flops"])


def measured(catalogue, kind):
    """Of each kernel the measured points: device, seconds at the peak, start, seconds."""
    points = {}
    start = catalogue["rules"]["gpu_start_s"] if kind == "gpu" else 0
    devices = {device["name"]: device for device in catalogue["devices"]}
    for platform in ("idgraf", "sirocco"):
        for curve in json.loads((FOLDER / f"{platform}.json").read_text("utf-8"))["curves"]:
            name, device = curve["kernel"], curve["arch"]
            if device not in MEASURED[kind] or curve["origin"].startswith("estimated"):
                continue
            rate = peak(devices[device], name[0])
            points.setdefault(name[1:], []).extend(
                (device, point["flops"] / rate, start, point["mean_s"])
                for point in curve["points"] if point["size"])
    return points


def fit(points):
    """Least absolute errors of the logarithms, as some times are far off. The shape is that within
    each device, so that one which is slower for all sizes does not bend it; the share is their
    geometric mean."""
    best = None
    for step in range(1200):
        half = 1e-9 * 10 ** (step / 150)
        error, middles = 0, []
        for device in {point[0] for point in points}:
            logs = [math.log((mean - start) / (tau * (1 + (half / tau) ** EXPONENT)))
                    for name, tau, start, mean in points if name == device]
            middles.append(median(logs))
            error += sum(abs(log - middles[-1]) for log in logs)
        if fmean(middles) >= 0 and (best is None or error < best[0]):
            best = error, {"share": significant(math.exp(-fmean(middles)), 3),
                           "half_s": significant(half, 3)}
    return best[1]


def held_out(catalogue, kind):
    """Of each kernel and device the errors, log(estimated / measured), of its times estimated
    from those of the other device."""
    for kernel, points in measured(catalogue, kind).items():
        for device in MEASURED[kind]:
            others = [point for point in points if point[0] != device]
            own = [point for point in points if point[0] == device]
            if others and own:
                fitted = fit(others)
                yield kernel, device, [math.log(seconds(fitted, start, tau) / mean)
                                       for _, tau, start, mean in own]


def fitted_kernels(catalogue):
    """The kernels of the catalogue with what is fitted to measured times."""
    times = {kind: measured(catalogue, kind) for kind in MEASURED}
    for kernel in catalogue["kernels"]:
        name, kind = kernel["kernel"], kernel["on"]
        shares = SHARES.get("getrf_incpiv" if name == "getrf" else name)
        if name in times[kind]:
            points = times[kind][name]
            origin = "fitted to " + " and ".join(
                device for device in MEASURED[kind] if device in {point[0] for point in points})
            yield {**kernel, **fit(points), "origin": origin}
        elif shares:
            gemm, share = fit(times[kind]["gemm"]), shares["cpu" if kind == "cpu" else "cuda"]
            yield {**kernel, "half_s": gemm["half_s"],
                   "share": significant(share * gemm["share"], 3),
                   "origin": f"assumed: {share:g} of the rate of gemm"}
        else:
            yield kernel


def main():
    text = CATALOGUE.read_text("utf-8")
    lines = [json.dumps(kernel) for kernel in fitted_kernels(json.loads(text))]
    devices, mark, _ = text.partition('  "kernels": [\n')
    CATALOGUE.write_text(devices + mark + "    " + ",\n    ".join(lines) + "\n  ]\n}\n", "utf-8")


if __name__ == "__main__":
    main()
