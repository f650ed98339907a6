# SPDX-License-Identifier: Apache-2.0
"""The example program, in C, C++ and Fortran, on this machine and simulated, by the environment and
by arguments: results, dates, trace, and messages and status of errors."""

import json
import math
import os
import re
import shutil
import tempfile

import testing
from repository import skip

TASKS = 6 + 15 + 15 + 20  # potrf, trsm, syrk, gemm of 6 x 6 tiles
LINE = re.compile(r"round (\d): (submitted|factorised|result read) at (\d+\.\d{6}) s")
PROGRAMS = ["tiled_cholesky", "tiled_cholesky_cpp"]
if (testing.BUILD / "examples/tiled_cholesky_f90").exists():  # there is a compiler, and BLAS
    PROGRAMS.append("tiled_cholesky_f90")


def run(*arguments, **more):
    """A run of the program whose turn it is."""
    return testing.run(PROGRAMS[0], *arguments, **more)


def check_output(by_argument):
    """The same run by both ways, with dates that increase from wait to wait, and its trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        by_environment = run(DUET_SIMULATE="idgraf", DUET_TRACE=path, DUET_REPORT="1")
        assert f"{2 * TASKS} tasks on idgraf" in by_environment.stderr, by_environment.stderr
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        kernels = [event for event in events if event.get("ph") == "X"
                   and re.match(r"d(potrf|trsm|syrk|gemm)", event["name"])]
        assert len(kernels) == 2 * TASKS, len(kernels)
        assert os.listdir(folder) == ["trace.json"]
        result = run(DUET_SIMULATE="idgraf", DUET_TRACE=os.path.join(folder, "none", "t.json"))
        assert result.returncode == 2 and not result.stdout, result
        assert "t.json" in result.stderr, result.stderr
    assert by_environment.returncode == 0, by_environment.stderr
    assert by_argument.returncode == 0, by_argument.stderr
    assert by_environment.stdout == by_argument.stdout
    assert not by_argument.stderr, by_argument.stderr
    found = [LINE.fullmatch(line) for line in by_environment.stdout.splitlines()]
    assert all(found), by_environment.stdout
    assert [match.group(1, 2) for match in found] == [
        (step, what) for step in "12" for what in ("submitted", "factorised", "result read")]
    dates = [float(match.group(3)) for match in found]
    assert dates == sorted(dates), dates
    assert dates[1] > dates[0] > 0, dates
    assert dates[4] > dates[3] >= dates[2], dates
    # 6 potrf, 5 trsm and 5 syrk of 320 x 320 come one after the other in each round
    assert dates[1] - dates[0] > 0.01, dates
    return dates


def check_choices(dates):
    """Options reach the simulation."""
    fewer = run("--duet-simulate=idgraf", "--duet-cpus=1", "--duet-gpus=0")
    assert fewer.returncode == 0, fewer.stderr
    last = LINE.fullmatch(fewer.stdout.splitlines()[-1])
    assert float(last.group(3)) > dates[-1]
    # on nodes far apart, whose messages take longer than all else
    nodes = run("--duet-simulate=idgraf", "--duet-nodes=2x2", "--duet-network=switch:10Gbps,1ms")
    assert nodes.returncode == 0, nodes.stderr
    last = LINE.fullmatch(nodes.stdout.splitlines()[-1])
    assert float(last.group(3)) > dates[-1] + 2 * 5 * 1e-3
    noisy = [run("--duet-simulate=idgraf", "--duet-noise", f"--duet-seed={seed}").stdout
             for seed in (1, 2)]
    assert noisy[0] != noisy[1]


def check_errors():
    for arguments, fragment in [
            (["--duet-simulate=nowhere"], "nowhere"),
            (["--duet-simulate=idgraf", "--duet-policy=nobody"], "known are eager, ws"),
            (["--duet-simulate=idgraf", "--duet-cpus=many"], "--duet-cpus"),
            (["--duet-simulate=idgraf", "--duet-cpu=1"], "--duet-cpu=1"),
            (["--duet-simulate=idgraf", "--duet-cpus=500"], "500"),
    ]:
        result = run(*arguments)
        assert result.returncode == 2, (arguments, result)
        assert fragment in result.stderr, result.stderr
        assert not result.stdout, result.stdout
    result = run(DUET_SIMULATE="idgraf", DUET_WINDOW="0")
    assert result.returncode == 2 and "DUET_WINDOW" in result.stderr, result
    # no CPU is left for potrf, which has no implementation for GPUs
    result = run("--duet-simulate=idgraf", "--duet-cpus=0", "--duet-gpus=1")
    assert result.returncode == 1 and "dpotrf" in result.stderr, result


def last_pivot(noise):
    """The deviation of the last of 1920 values of the process whose covariance is factorised, given
    all others: by Kalman's filter."""
    keep, variance = math.exp(-2), 1.0
    for _ in range(6 * 320 - 1):
        variance -= variance * variance / (variance + noise)
        variance = keep * variance + 1 - keep
    return math.sqrt(variance + noise)


def has_processes():
    """True if several processes can be had. Memory that MPI never frees seems a leak of ours to a
    sanitizer."""
    return shutil.which("mpirun") and "ASAN_OPTIONS" not in os.environ


def check_real():
    """On this machine it computes, on a CPU and an emulated GPU at a time, of two nodes if they can
    be had."""
    words = ["--duet-emulate=free", "--duet-cpus=1", "--duet-gpus=1", "--duet-no-bind"]
    result = run(*words, "--duet-nodes=2", launcher=("mpirun", "-n", "2"),
                 OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                 OMPI_MCA_rmaps_base_oversubscribe="1") if has_processes() else None
    if not result or "without MPI" in result.stderr:
        result = run(*words)
    assert result.returncode == 0, result
    pivots = re.findall(r"^round (\d): last pivot (\S+)$", result.stdout, re.M)
    assert [step for step, _ in pivots] == ["1", "2"], result.stdout
    for step, pivot in pivots:
        assert abs(float(pivot) - last_pivot(0.1 * int(step))) < 1e-9, (step, pivot)
    result = run("--duet-emulate=idgraf", "--duet-simulate=idgraf")
    assert result.returncode == 2 and "exclude each other" in result.stderr, result


testing.need(*PROGRAMS)
printed = []
for _ in PROGRAMS:
    check_real()
    simulated = run("--duet-simulate=idgraf")
    check_choices(check_output(simulated))
    check_errors()
    printed.append(simulated.stdout)
    PROGRAMS.append(PROGRAMS.pop(0))
assert len(set(printed)) == 1, printed
