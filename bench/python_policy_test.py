# SPDX-License-Identifier: Apache-2.0
"""The benchmark of policies in Python at a tiny size."""

import os
import subprocess
import sys

from repository import BUILD, ROOT, skip

if not os.access(BUILD / "duet", os.X_OK) or any(
        name in os.environ for name in ("TSAN_OPTIONS", "ASAN_OPTIONS")):
    skip("no duet, or sanitizers, which want to be loaded before Python")
result = subprocess.run([sys.executable, ROOT / "bench" / "python_policy.py", "--duet",
                         BUILD / "duet", "--tiles", "2", "--repeats", "1"],
                        capture_output=True, text=True, check=False)
if "without SimGrid" in result.stderr:
    skip("built without SimGrid")
assert result.returncode == 0, result
rows = [line.split() for line in result.stdout.splitlines()]
assert [row[0] for row in rows] == ["policy", "eager", "Eager", "heft", "Earliest"], result
assert [row[2] == "-" for row in rows[1:]] == [True, False, True, False], result
