# SPDX-License-Identifier: Apache-2.0
"""The lessons run, draw what they say, and their answers hold."""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from repository import BUILD, ROOT

# Of each lesson: what its answer says, whose numbers `holds` compares, and its pictures, with texts
# that are in them.
LESSONS = {
    "1_greedy_or_heft": (
        r"HEFT is ([\d.]+) times as fast: a dgemm takes a CPU (\d+) times",
        lambda faster, slower: faster > 2 and slower > 10,
        {"greedy_or_heft_eager.svg": {"cpu0", "gpu0", "dpotrf"},
         "greedy_or_heft_heft.svg": {"cpu0", "gpu0", "dpotrf"}}),
    "2_locality": (
        r"saves (\d+)% .* brings (\d+)% less to GPUs, and (-?\d+)% with",
        lambda slow, fewer, fast: slow > 10 and fewer > 10 and abs(fast) < 5,
        {"locality/makespan-over-link_pcie.svg": {"0.25x", "2x", "dmda", "heft-tm"}}),
    "3_priorities": (
        r"save ([\d.]+)% on one GPU and ([\d.]+)% on eight, .* takes (\d+)% .* of (\d+)%\.",
        lambda one, eight, most, least: 0 < one < eight and most > least,
        {"priorities/makespan-over-gpus.svg": {"1", "8", "none", "workload"}}),
    "4_memory": (
        r"is dmda with 96MiB, darts with 12MiB\. .* ([\d.]+) \(dmda\), ([\d.]+) \(darts\)",
        lambda dmda, darts: dmda > darts > 1,
        {"memory/makespan-over-gpu_memory.svg": {"12MiB", "96MiB", "darts", "eager"}}),
    "5_your_own_policy": (
        r"(\d+)% of eager's time at most, (\d+)% of dmda's",
        lambda eager, dmda: eager < 70 and dmda < 115,
        {"own_policy.svg": {"python3 on idgraf: earliest", "dgemm"}}),
}

scripts = sorted(path.stem for path in (ROOT / "examples/lessons").glob("*.py"))
assert scripts == list(LESSONS), scripts
os.chdir(tempfile.mkdtemp())
for name, (answer, holds, pictures) in LESSONS.items():
    text = subprocess.run(
        [sys.executable, ROOT / f"examples/lessons/{name}.py"], check=True, capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python"),
                        "DUET": str(BUILD / "duet")}).stdout
    found = re.search(answer, text)
    assert found and holds(*map(float, found.groups())), (name, text)
    for picture, words in pictures.items():
        texts = [one.text or "" for one in xml.etree.ElementTree.parse(picture).iter()
                 if one.tag.endswith("}text")]
        assert all(any(shown.startswith(word) for shown in texts) for word in words), texts
