# SPDX-License-Identifier: Apache-2.0
"""The shapes of the catalogue are those that the fit gives, and how far estimates are off.

What is estimated of a device whose own times were not used is compared with these times. The bounds
are what docs/models.md states: they fail where a change makes estimates worse.
"""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fit_catalogue as fit  # pylint: disable=wrong-import-position

# Kind -> the factor by which no time of gemm is off, and the mean of all kernels' factors.
BOUNDS = {"gpu": (1.6, 1.35), "cpu": (2.0, 2.0)}

catalogue = json.loads(pathlib.Path(fit.CATALOGUE).read_text("utf-8"))
made = list(fit.fitted_kernels(catalogue))
assert made == catalogue["kernels"], "run platforms/fit_catalogue.py"

for kind, (most, mean) in BOUNDS.items():
    errors = {}
    for kernel, device, values in fit.held_out(catalogue, kind):
        print(f"{kernel:12} {device:10} {len(values)} times, in the mean "
              f"{math.expm1(sum(values) / len(values)):+.0%}, at most a factor of "
              f"{math.exp(max(map(abs, values))):.2f}")
        errors.setdefault(kernel, []).extend(abs(value) for value in values)
    assert len(errors["gemm"]) == 14, errors
    assert math.exp(max(errors["gemm"])) < most, (kind, errors["gemm"])
    every = [error for values in errors.values() for error in values]
    print(f"{kind}: {len(every)} times, mean factor {math.exp(sum(every) / len(every)):.2f}")
    assert math.exp(sum(every) / len(every)) < mean, (kind, errors)
    # a shape that tiles of all sizes reach is worse: what is fitted says something
    flat = []
    for kernel, points in fit.measured(catalogue, kind).items():
        for device in fit.MEASURED[kind]:
            others = [math.log(point[3] / point[1]) for point in points if point[0] != device]
            own = [math.log(point[3] / point[1]) for point in points if point[0] == device]
            flat += [abs(one - sum(others) / len(others)) for one in own if others]
    assert sum(every) / len(every) < sum(flat) / len(flat), (kind, sum(flat) / len(flat))
