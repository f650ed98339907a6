# SPDX-License-Identifier: Apache-2.0
"""The benchmark of policies' decisions at a tiny size: some cost nothing to place, others do."""

import os
import pathlib
import shutil
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
SOURCE = pathlib.Path(os.environ.get("DUET_SOURCE_DIR") or pathlib.Path(__file__).parents[1])

if not shutil.which("valgrind") or not os.access(BUILD / "duet", os.X_OK) or any(
        name in os.environ for name in ("TSAN_OPTIONS", "ASAN_OPTIONS")):
    sys.exit(77)

result = subprocess.run([sys.executable, SOURCE / "bench" / "decisions.py", "--build", BUILD,
                         "--tiles", "4", "--machines", "4 + 8", "--policies", "eager,heft,cp"],
                        capture_output=True, text=True, check=False)
if "without SimGrid" in result.stderr or "not built" in result.stderr:
    sys.exit(77)
assert result.returncode == 0, result
rows = {line.split()[0]: list(map(float, line.split()[1:])) for line in
        result.stdout.splitlines()[2:]}
assert list(rows) == ["eager", "heft", "cp"], result
assert all(count > 10 for counts in rows.values() for count in counts), rows
assert rows["eager"][0] < rows["heft"][0], rows
