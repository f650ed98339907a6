# SPDX-License-Identifier: Apache-2.0
"""The page's scripts are correct JavaScript, by Node, and nothing in them is left over."""

import pathlib
import re
import shutil
import subprocess
import sys

if not shutil.which("node"):
    print("no node")
    sys.exit(77)
scripts = sorted(pathlib.Path(__file__).parent.glob("*.js"))
assert scripts
everything = "".join(script.read_text(encoding="utf-8") for script in scripts)
# in the page they are one script, where a name can be given once
subprocess.run(["node", "--check", "-"], input="'use strict';" + everything, text=True, check=True)
names = re.findall(r"^(?:function|class|const|let) (\w+)", everything, re.M)
unused = [name for name in names if len(re.findall(rf"\b{name}\b", everything)) < 2]
assert len(names) > 50 and not unused, unused
style = (pathlib.Path(__file__).parent / "page.css").read_text(encoding="utf-8")
style = re.sub(r"/\*.*?\*/", "", style, flags=re.S)
classes = set(re.findall(r"\.([a-z][a-z-]*)(?=[\s.:,>\[{)])", style))
unused = [name for name in classes if not re.search(rf"\b{name}\b", everything)]
assert len(classes) > 30 and not unused, unused
