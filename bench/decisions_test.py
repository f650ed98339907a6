# SPDX-License-Identifier: Apache-2.0
"""The benchmark of policies' decisions at a tiny size: some cost nothing to place, others do."""

import os
import shutil
import subprocess
import sys

from repository import BUILD, ROOT, skip

if not shutil.which("valgrind") or not os.access(BUILD / "duet", os.X_OK) or any(
        name in os.environ for name in ("TSAN_OPTIONS", "ASAN_OPTIONS")):
    skip("no valgrind, no duet, or what a sanitizer adds would be counted")

result = subprocess.run([sys.executable, ROOT / "bench" / "decisions.py", "--build", BUILD,
                         "--tiles", "4", "--machines", "4 + 8", "--policies", "eager,heft,cp"],
                        capture_output=True, text=True, check=False)
if "without SimGrid" in result.stderr or "not built" in result.stderr:
    skip("built without SimGrid")
assert result.returncode == 0, result
rows = {line.split()[0]: list(map(float, line.split()[1:])) for line in
        result.stdout.splitlines()[2:]}
assert list(rows) == ["eager", "heft", "cp"], result
assert all(count > 10 for counts in rows.values() for count in counts), rows
assert rows["eager"][0] < rows["heft"][0], rows
