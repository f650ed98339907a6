# SPDX-License-Identifier: Apache-2.0
"""The shapes of the catalogue are those that the fit gives, and how far estimates are off.

Estimates of a device whose own times were not used are compared with these times. The bounds are
what docs/models.md states: they fail where a change makes estimates worse.
"""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fit_catalogue as fit  # pylint: disable=wrong-import-position

# Kind -> times of gemm, the factor by which none of them is off, their mean factor, and that of all
# kernels.
BOUNDS = {"gpu": (74, 1.85, 1.23, 1.5), "cpu": (14, 2.0, 1.55, 2.0)}

catalogue = json.loads(pathlib.Path(fit.CATALOGUE).read_text("utf-8"))
made = {key: list(lines) for key, lines in (("devices", fit.fitted_devices(catalogue)),
                                            ("kernels", fit.fitted_kernels(catalogue)))}
assert all(made[key] == catalogue[key] for key in made), "run platforms/fit_catalogue.py"


def seconds(kernel, point, ratio):
    """Estimated time of a kernel with `share` and `half_s` on a device of that ratio."""
    return point.start + point.tau / min(kernel["share"] * ratio, 1) * (
        1 + (kernel["half_s"] / point.tau) ** fit.EXPONENT)


def held_out(times, use=lambda point: True, judge=lambda point: True, known=()):
    """For each kernel and device the errors, log(estimated / measured), of times estimated from the
    other devices that may be used. A kernel of those `known` uses the device's own gemm all the
    same."""
    for kernel, points in times.items():
        for device in sorted({point.device for point in points if judge(point)}):
            own = [point for point in points if point.device == device]
            alike = {point.peaks for point in own}
            others = [point for point in points if use(point) and point.peaks not in alike]
            gemm = tuple(point for point in times["gemm"]
                         if use(point) and (kernel in known or point.peaks not in alike))
            if others:
                ratios = fit.ratios_of(gemm)
                fitted = fit.fit(others, {} if kernel == "gemm" else ratios, per_decade=15)
                yield kernel, device, [
                    math.log(seconds(fitted, point, ratios.get(point.peaks, 1)) / point.mean)
                    for point in own]


def factor(errors):
    return math.exp(sum(map(abs, errors)) / len(errors))


def show(title, found):
    """Prints the errors, and returns them by kernel."""
    print(f"\n{title}")
    errors = {}
    for kernel, device, values in found:
        print(f"{kernel:12} {device:10} {len(values):2} times, in the mean "
              f"{math.expm1(sum(values) / len(values)):+.0%}, at most a factor of "
              f"{math.exp(max(map(abs, values))):.2f}")
        errors.setdefault(kernel, []).extend(values)
    for kernel, values in errors.items():
        print(f"{kernel:12} mean factor {factor(values):.2f}")
    return errors


for kind, (count, most, mean_of_gemm, mean) in BOUNDS.items():
    times = fit.measured(catalogue, kind)
    errors = show(f"{kind}, of a device nothing is known", held_out(times))
    known = show(f"{kind}, its gemm is known", (
        found for found in held_out(times, known=times) if found[0] != "gemm"))
    assert len(errors["gemm"]) == count, len(errors["gemm"])
    assert math.exp(max(map(abs, errors["gemm"]))) < most, (kind, errors["gemm"])
    assert factor(errors["gemm"]) < mean_of_gemm, (kind, factor(errors["gemm"]))
    every = sum(errors.values(), [])
    print(f"{kind}: {len(every)} times, mean factor {factor(every):.2f}")
    assert factor(every) < mean, (kind, factor(every))
    # the rate of a device's products says something of its other kernels
    others = sum((values for kernel, values in errors.items() if kernel != "gemm"), [])
    assert factor(sum(known.values(), [])) < factor(others), (kind, known, others)
    # a shape that tiles of all sizes reach is worse: the fit has a meaning
    flat = []
    for kernel, points in times.items():
        for device in {point.device for point in points}:
            own = [point for point in points if point.device == device]
            logs = [math.log(point.mean / point.tau) for point in points
                    if point.peaks not in {one.peaks for one in own}]
            flat += [math.log(point.mean / point.tau) - sum(logs) / len(logs)
                     for point in own if logs]
    assert factor(every) < factor(flat), (kind, factor(flat))

# Without published rates the fit is worse on the devices of today, of which these are.
times = fit.measured(catalogue, "gpu")
OLD = {"c2050", "k40m"}
before = show("gpu, devices of after 2013 from those before, as it was without published rates",
              held_out(times, use=lambda point: not point.published,
                           judge=lambda point: point.device not in OLD))
after = held_out(times, judge=lambda point: point.device not in OLD)
after = [value for kernel, _, values in after if kernel == "gemm" for value in values]
print(f"gemm today: {factor(before['gemm']):.2f} before, {factor(after):.2f} now")
assert factor(after) < factor(before["gemm"]), (after, before)
