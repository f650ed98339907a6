# SPDX-License-Identifier: Apache-2.0
"""`mpirun -n 3 duet calibrate --nodes`: the file has what the report says, and all that it had."""

import json
import os
import pathlib
import tempfile

import testing
from testing import DUET, duet, mpirun, refused

testing.need_mpirun()
os.chdir(tempfile.mkdtemp())
MINE = pathlib.Path("mine.json")
NODES = ["calibrate", "--nodes", "--out", str(MINE), "--budget", "0.1s", "--json"]


# There has to be a description, and more than one process: else nothing is written.
refused(duet(*NODES), "there is no mine.json")
duet("platform", "new", "--cpus", "1x2", "--out", MINE, status=0)
before = json.loads(MINE.read_text(encoding="utf-8"))
alone = duet(*NODES)
testing.need_mpi(alone.stderr)
refused(alone, "mpirun -n 2 duet calibrate --nodes")
assert json.loads(MINE.read_text(encoding="utf-8")) == before

# The other processes need not have it.
result = mpirun(1, *NODES, ":", "-n", "2", "sh", "-c", 'cd / && exec "$@"', "sh", DUET, *NODES,
                status=0)
report = json.loads(result.stdout)  # of one process
assert report["nodes"] == 3 and report["file"] == str(MINE), report
network, sizes = report["network"], report["messages"]
assert [size["bytes"] for size in sizes] == [2 ** i for i in range(24)], sizes
for size in sizes:
    assert size["samples"] + size["rejected"] >= 2 * 11, size  # from either other process
    assert 0 < size["quartile1_s"] <= size["median_s"] <= size["quartile3_s"], size
    predicted = (2 * network["overhead_s"] + network["latency_s"] +
                 size["bytes"] / network["bandwidth_Bps"] +
                 (network["rendezvous_s"] if size["bytes"] > network["eager_bytes"] else 0))
    assert abs(predicted - size["predicted_s"]) < 1e-9 * predicted, size
assert 0 < report["foreign_s"] < 1e-3, report

# The file: the network and the cost are new, all else is as it was.
after = json.loads(MINE.read_text(encoding="utf-8"))
assert after.pop("network") == {"kind": "switch", **network}
assert after["costs"].pop("foreign_s") == report["foreign_s"]
assert after == before
