# SPDX-License-Identifier: Apache-2.0
"""The benchmark of policies' decisions at a tiny size: heft decides where it places a task."""

import os
import shutil
import subprocess
import sys

from repository import BUILD, ROOT, skip

if not shutil.which("valgrind") or not os.access(BUILD / "duet", os.X_OK) or any(
        name in os.environ for name in ("TSAN_OPTIONS", "ASAN_OPTIONS")):
    skip("no valgrind, no duet, or what a sanitizer adds would be counted")

result = subprocess.run([sys.executable, ROOT / "bench" / "decisions.py", "--build", BUILD,
                         "--tiles", "2", "--machines", "4 + 8", "--policies", "heft"],
                        capture_output=True, text=True, check=False)
if "not built" in result.stderr:
    skip("bench/decisions is not built")
assert result.returncode == 0, result
name, placing, taking = result.stdout.splitlines()[-1].split()
assert name == "heft" and float(placing) > float(taking) > 10, result
