# SPDX-License-Identifier: Apache-2.0
"""The example programs whose tasks wait for their children: verified on this machine, on emulated
GPUs beside it, and the same tasks, repeatably, in simulations."""

import re

import testing

PROGRAMS = {
    "fibonacci": (["15"], r"fibonacci\(15\) = 610 by (\d+) tasks in (\d+\.\d+) ms\n"),
    "merge_sort": (["300000"], r"sorted 300000 numbers by (\d+) tasks in (\d+\.\d+) ms\n"),
}


def run(name, *options):
    """(tasks, milliseconds) of a run that ended well."""
    arguments, expected = PROGRAMS[name]
    done = testing.run(name, *arguments, *options)
    assert done.returncode == 0, (name, options, done.stdout, done.stderr)
    found = re.fullmatch(expected, done.stdout)
    assert found, (name, options, done.stdout)
    return int(found.group(1)), float(found.group(2))


def main():
    for name in PROGRAMS:
        tasks = {run(name, f"--duet-cpus={cpus}", f"--duet-policy={policy}", *more)[0]
                 for cpus in (1, 2) for policy in ("ws", "eager")
                 for more in ([], ["--duet-emulate=free", "--duet-gpus=1"])}
        simulated = [run(name, "--duet-simulate=idgraf", f"--duet-cpus={cpus}", "--duet-gpus=0")
                     for cpus in (1, 1, 4)]
        assert len(tasks | {count for count, _ in simulated}) == 1, (name, tasks, simulated)
        assert simulated[0] == simulated[1], (name, simulated)
        assert simulated[2][1] < 0.5 * simulated[0][1], (name, simulated)


main()
