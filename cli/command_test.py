# SPDX-License-Identifier: Apache-2.0
"""`duet` itself and `duet list`: help, version, unknown commands, what is listed."""

import os
import re
import subprocess

from testing import DUET, duet, good, refused

SOURCE = os.environ.get("DUET_SOURCE_DIR") or os.path.dirname(os.path.dirname(__file__))


with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
    version = re.search(r"project\(duet VERSION (\S+)", file.read()).group(1)
assert good("--version") == f"duet {version}\n"

for command in "simulate", "run", "calibrate", "compare", "info", "list":
    assert command in good("--help")
    assert f"duet {command}" in good(command, "--help")
refused(duet("fish"), "known are: simulate, run, study, tune, ")
refused(duet(), "which command")
refused(duet("list", "--nope"), "--nope")
refused(duet("list", "fish"), "'fish'")
refused(duet("list", "f\033[31mish\007"), "'f?[31mish?'")
refused(duet("list", "policies", "kernels"), "'kernels'")
refused(duet("list", "kernels", "--platform", "nope"), "nope")

policies = good("list", "policies")
for name in "ws", "data-aware", "locality-aware", "heft", "eager":
    assert re.search(rf"^{name} ", policies, re.M), name
assert policies == good("simulate", "--policy", "help") == good("simulate", "--policy=help")
assert "history" in good("list", "models") == good("run", "--model=help")
for name in "cholesky", "gemm", "layered":
    assert re.search(rf"^{name} ", good("list", "workloads"), re.M), name
for name in "idgraf", "mirage", "attila", "sirocco":
    assert re.search(rf"^{name} ", good("list", "platforms"), re.M), name
kernels = good("list", "kernels", "--platform", "idgraf")
assert re.search(r"^idgraf: dgemm on c2050\n  \S.*\n", kernels, re.M)
assert re.search(r"^ +960 +1\.76947e\+09 +5\.91\d* ", kernels, re.M)
everything = good("list")
assert policies in everything and "idgraf" in everything

with open("/dev/full", "w", encoding="utf-8") as full:
    result = subprocess.run([DUET, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
assert result.returncode == 1 and "standard output" in result.stderr, result
