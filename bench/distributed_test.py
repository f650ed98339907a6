# SPDX-License-Identifier: Apache-2.0
"""The least messages of a distribution are those of docs/nodes.md, which the runtime sends."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import distributed  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "nodes.md"
TEXT = PAGE.read_text(encoding="utf-8")

for name in "cholesky", "lu":
    row = re.search(rf"^\| `{name}` \|([\d ,|]+)\|$", TEXT, re.MULTILINE)
    shown = [int(cell.replace(",", "")) for cell in row.group(1).split("|")]
    counted = [distributed.least_messages(name, 20, rows, cols)
               for rows, cols in [(2, 2), (1, 4), (4, 1)]]
    assert counted == shown, (name, counted, shown)
assert distributed.least_messages("lu", 20, 1, 1) == 0
