#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions a task inside of each policy's functions, counted by valgrind's callgrind: what it
decides with, and the lists that it pushes to and pops from. Nothing else is counted, so that it
does not matter that the engine is the simulated one, which makes every policy take the decisions
that it would take: Cholesky in double precision on Idgraf, tiles of 960, without set-arch.
"""

import os
import pathlib
import re
import tempfile

import common

SLOTS = {"placing": ["plan", "push"], "taking": ["pop", "steal", "prologue", "epilogue"]}
COUNTED = common.SOURCE / "bench" / "decisions" / "counted.c"
MACHINES = {"4 + 8": (4, 8), "16 + 64": (16, 64)}


def policies(duet):
    """Names of the built-in policies, without auto, which becomes another one."""
    lines = common.execute([duet, "list", "policies"]).splitlines()
    names = [line.split()[0] for line in lines if line and not line[0].isspace()]
    return [name for name in names if name != "auto"]


def behind_functions(policy, folder):
    """The path of a shared object with that policy."""
    path = os.path.join(folder, f"{policy}.so")
    common.execute([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-shared", "-fPIC",
                    f'-DDECIDES="{policy}"', f"-I{common.SOURCE / 'core' / 'include'}", "-o", path,
                    COUNTED])
    return path


def count(duet, policy, machine, tiles, slots):
    """Instructions within those slots of the policy at this path."""
    cpus, gpus = MACHINES[machine]
    toggles = [f"--toggle-collect=decide_{slot}" for slot in slots]
    texts = common.callgrind("--collect-atstart=no", *toggles, duet, "simulate", "cholesky",
                             "--platform", "idgraf", "--tile", 960, "--n", 960 * tiles, "--cpus",
                             cpus, "--gpus", gpus, "--policy", policy, "--quiet")
    return sum(int(re.search(r"^totals: (\d+)", text, re.MULTILINE).group(1)) for text in texts)


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD, metavar="FOLDER")
    parser.add_argument("--policies", type=lambda text: text.split(","), metavar="LIST")
    parser.add_argument("--machines", type=common.names(MACHINES), default=list(MACHINES),
                        metavar="LIST", help=f"CPUs + GPUs, of {','.join(MACHINES)}")
    parser.add_argument("--tiles", type=int, default=20, metavar="N", help="a side")
    options = parser.parse_args()
    duet = (options.build / "duet").resolve()
    tasks = options.tiles * (options.tiles + 1) * (options.tiles + 2) // 6
    with tempfile.TemporaryDirectory() as folder:
        print("instructions a task         ", *(f"{machine:^24}" for machine in options.machines))
        print("                            ",
              *(f"{name:>12}" for _ in options.machines for name in SLOTS))
        for policy in options.policies or policies(duet):
            path = behind_functions(policy, folder)
            counts = [count(duet, path, machine, options.tiles, slots) / tasks
                      for machine in options.machines for slots in SLOTS.values()]
            print(f"{policy:<28}", *(f"{each:12.0f}" for each in counts), flush=True)


if __name__ == "__main__":
    main()
