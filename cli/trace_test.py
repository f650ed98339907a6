# SPDX-License-Identifier: Apache-2.0
"""Traces for others' programs: arrows and counters as Perfetto reads them."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

DUET = os.path.abspath(os.environ.get("DUET") or sys.argv[1])


def trace(path, arguments):
    result = subprocess.run([DUET, *arguments.split(), "--quiet", "--trace", str(path)],
                            capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0 and not result.stderr, result
    return path.read_text(encoding="utf-8")


def load(events):
    """Arrows (pairs of slices) and counters (points by process and name), found as Perfetto's
    importer does: in order of dates, each end of an arrow in the slice that is open in its thread.
    """
    names = {event["pid"]: event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "process_name"}
    dated = sorted((event for event in events if event["ph"] in "XCsf"),
                   key=lambda event: round(event["ts"] * 1000))
    opened, begun, arrows = {}, {}, []
    counters = collections.defaultdict(list)
    for event in dated:
        date = round(event["ts"] * 1000)
        if event["ph"] == "C":
            (key, value), = event["args"].items()
            counters[names[event["pid"]], f"{event['name']} {key}"].append((date, value))
            continue
        thread = event["pid"], event["tid"]
        current = opened.get(thread)
        if event["ph"] == "X":
            assert not current or round((current["ts"] + current["dur"]) * 1000) <= date, event
            opened[thread] = event
            continue
        assert current and date <= round((current["ts"] + current["dur"]) * 1000), event
        flow = event["cat"], event["name"], event["id"]
        if event["ph"] == "s":
            assert flow not in begun, event
            begun[flow] = current
        else:
            assert event["bp"] == "e" and current["ts"] == event["ts"], event
            arrows.append((begun.pop(flow), current))
    assert not begun, begun
    return arrows, counters


def test_perfetto(folder):
    for arguments in ("simulate cholesky --platform idgraf --n 9600 --policy heft",
                      "simulate cholesky --platform idgraf --n 38400 --policy ws",
                      "run cholesky --n 512 --tile 64 --emulate free --gpus 1 --set-arch"):
        found = json.loads(trace(folder / "run.json", arguments))
        head, events = found["otherData"], found["traceEvents"]
        arrows, counters = load(events)
        slices = [event for event in events if event["ph"] == "X"]
        kernels = [event for event in slices if event["cat"] == "kernel"]
        for start, end in arrows:
            assert start["ts"] + start["dur"] <= end["ts"] + 1e-9, (start, end)
            writes = {access[0] for access in start["args"].get("accesses", ())}
            reads = {access[0] for access in end["args"].get("accesses", ())}
            assert (writes | {start["args"].get("handle")}) & (reads | {end["args"].get("handle")}
                                                               ) - {None}, (start, end)
        into = sum(end["cat"] == "kernel" for _, end in arrows)
        if len(slices) < 20000:
            assert into > 0.8 * len(kernels), (into, len(kernels))
        else:
            assert 0 < len(arrows) < len(slices) / 4, len(arrows)
        ready = [value for _, value in counters["counters", "ready tasks"]]
        assert ready[-1] == 0 and 0 < max(ready) < len(kernels), ready
        for name, size in zip(head["nodes"][1:], head["memory_bytes"][1:]):
            used = [value for _, value in counters[name, "memory used bytes"]]
            assert used and 0 < max(used) <= size, (arguments, name, used[:5], size)
        copied = [points for (_, name), points in counters.items()
                  if name not in ("ready tasks", "memory used bytes")]
        assert copied and all(points[-1][1] == 0 for points in copied), counters.keys()


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_perfetto(pathlib.Path(folder))


if __name__ == "__main__":
    main()
