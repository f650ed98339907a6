# SPDX-License-Identifier: Apache-2.0
"""Numerical programs among the examples: verified on CPUs and on emulated GPUs with memory for a
tenth of the data, simulated to the same digits, and their refusals of invalid sizes."""

import re

from repository import skip
from testing import need, run

# program, sizes, bytes of its data, tasks (None: as in the first run; 0: they differ), sizes that
# are refused
PROGRAMS = [
    ("dot_product", ["100000", "32"], 200000 * 8, 0, ["10", "20"]),
    ("tiled_qr", ["512", "64"], 512 * 512 * 8, sum(k * k for k in range(1, 9)), ["100", "64"]),
    ("conjugate_gradients", ["100", "20"], 100 * 100 * 92, 0, ["3", "4"]),
    ("sparse_lu", ["10", "40"], 400 * 400 * 8, None, ["0", "40"]),
]


def tasks_of(report):
    return int(re.search(r"(\d+) tasks", report)[1])


def check(program, sizes, data_bytes, tasks, refused):
    for options in (["--duet-cpus=2", "--duet-policy=heft"],
                    ["--duet-emulate=free", "--duet-cpus=1", "--duet-gpus=2",
                     f"--duet-gpu-memory={data_bytes // 10}"]):
        result = run(program, *sizes, "--duet-no-bind", "--duet-report", *options)
        assert result.returncode == 0, result
        found = re.search(r"= (\S+)$", result.stdout, re.M)
        assert found and float(found[1]) < 1e-9, result.stdout
        tasks = tasks_of(result.stderr) if tasks is None else tasks
        assert tasks in (0, tasks_of(result.stderr)), result.stderr
    result = run(program, *refused)
    assert result.returncode == 2 and result.stderr.count("\n") == 1, result
    simulated = [run(program, *sizes, "--duet-simulate=idgraf", "--duet-gpus=2", "--duet-report")
                 for _ in range(2)]
    assert simulated[0].returncode == 0, simulated[0]
    assert tasks in (0, tasks_of(simulated[0].stderr)), simulated[0]
    assert simulated[0].stdout == simulated[1].stdout


need(*(program[0] for program in PROGRAMS))
for program in PROGRAMS:
    check(*program)
