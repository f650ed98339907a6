# SPDX-License-Identifier: Apache-2.0
"""Traces for others' programs: arrows and counters as Perfetto reads them, and the same run in
Paje's format."""

import collections
import json
import pathlib
import shlex
import tempfile

from testing import duet


def trace(path, arguments):
    result = duet(*arguments.split(), "--quiet", "--trace", path, status=0)
    assert not result.stderr, result
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
                      "simulate cholesky --platform idgraf --n 34560 --policy ws",
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


def parse(text):
    """What pj_dump would write of a file in Paje's format, as lists of columns by nature and type,
    with dates in ns. Strict: all is defined before it is used, and once; fields are what they are
    defined as, dates do not go back, links have two ends."""
    head, _, body = text.rpartition("%EndEventDef\n")
    events = {}
    for block in head.split("%EndEventDef\n"):
        name, *fields = block.splitlines()
        _, name, number = name.split()
        assert number not in events and name.startswith("Paje"), name
        events[number] = name[4:], [field[2:].split() for field in fields]
    types, containers, values, states, variables, links = {}, {"0": ("0", "0")}, {}, {}, {}, {}
    lines, last = collections.defaultdict(list), -10**18

    def close(nature, kept, key, date):
        if key in kept:
            start, *rest = kept.pop(key)
            lines[nature, types[key[0]][2]].append(
                (containers[key[1]][1], start, date, *rest))

    for line in body.splitlines():
        number, *words = shlex.split(line)
        name, fields = events[number]
        assert len(words) == len(fields), line
        at = {field: word for (field, _), word in zip(fields, words)}
        assert all(word and (kind == "string" or len(list(map(float, word.split()))) ==
                             (3 if kind == "color" else 1))
                   for (_, kind), word in zip(fields, words)), line
        date = round(float(at.get("Time", 0)) * 1e6)
        assert "Time" not in at or date >= last, line
        last = max(last, date) if "Time" in at else last
        kind, where = at.get("Type"), at.get("Container")
        if name == "DefineEntityValue":
            assert types[kind][0] == "State" and (kind, at["Alias"]) not in values, line
            values[kind, at["Alias"]] = at["Name"]
        elif name.startswith("Define"):
            assert kind in types or kind == "0" and at["Alias"] not in types, line
            types[at["Alias"]] = name[6:-4], kind, at["Name"]
            assert all(at.get(end, kind) in types or kind == "0"
                       for end in ("StartContainerType", "EndContainerType")), line
        elif name == "CreateContainer":
            assert types[kind][:2] == ("Container", containers[where][0]), line
            assert at["Alias"] not in containers, line
            containers[at["Alias"]] = kind, at["Name"]
        else:
            nature = name if name.endswith("Event") else next(
                word for word in ("State", "Variable", "Link") if name.endswith(word))
            known = nature.replace("NewEvent", "Event"), containers[where][0]
            assert types[kind][:2] == known, line
            if nature == "State":
                close(nature, states, (kind, where), date)
                states[kind, where] = date, values[kind, at["Value"]], *words[4:]
            elif nature == "Variable":
                sign = {"Set": 0, "Add": 1, "Sub": -1}[name[:3]]
                before = variables[kind, where][1] if sign else 0
                close(nature, variables, (kind, where), date)
                variables[kind, where] = date, before + (sign or 1) * float(at["Value"])
            elif name == "StartLink":
                assert at["Key"] not in links, line
                links[at["Key"]] = kind, date, at["Value"], containers[at["StartContainer"]]
            elif name == "EndLink":
                started, start, value, origin = links.pop(at["Key"])
                end = containers[at["EndContainer"]]
                assert started == kind and value == at["Value"], line
                lines["Link", types[kind][2]].append(
                    (containers[where][1], start, date, value, origin[1], end[1], at["Key"]))
    assert not links, links
    for nature, kept in (("State", states), ("Variable", variables)):
        for key in list(kept):
            close(nature, kept, key, last)
    return lines


def test_paje(folder):
    for arguments in ("simulate cholesky --platform idgraf --n 9600 --policy heft --gpu-memory 3%",
                      "simulate layered --platform idgraf --n 300 --policy eager"):
        found = json.loads(trace(folder / "run.json", arguments))
        lines = parse(trace(folder / "run.paje", arguments))
        slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
        into = {id(end): start for start, end in load(found["traceEvents"])[0]}

        def dates(event):
            start = round(event["ts"] * 1000)
            return start, start + round(event["dur"] * 1000)

        kernels = {(*dates(event), event["name"], event["args"]["task"]): event
                   for event in slices if event["cat"] == "kernel"}
        states = {(start, end, name, int(rest[4])): int(rest[0])
                  for _, start, end, name, *rest in lines["State", "Worker State"] if rest}
        assert states == {key: event["args"]["bytes"] for key, event in kernels.items()}
        for kind, wanted in (("Fetch", False), ("WriteBack", True)):
            copies = sorted((*dates(event), event["args"]["bytes"]) for event in slices
                            if event["cat"] == "copy" and
                            event["args"].get("write_back", False) == wanted)
            assert copies == sorted((start, end, int(size)) for _, start, end, size, *_ in
                                    lines["Link", f"Intra-node data {kind}"]), kind
        pairs = collections.Counter()
        for event in kernels.values():
            before = into.get(id(event))
            while before and before["cat"] != "kernel":
                before = into.get(id(before))
            if before:
                pairs[dates(before)[1], dates(event)[0]] += 1
        assert pairs and pairs == collections.Counter(
            (start, end) for _, start, end, *_ in lines["Link", "Dependency"])
        sizes = dict(zip(found["otherData"]["nodes"], found["otherData"]["memory_bytes"]))
        for kind in ("Number of Ready Tasks", "Number of Submitted Uncompleted Tasks",
                     "In Flight (MB)", "Bandwidth In (MB/s)", "Bandwidth Out (MB/s)"):
            last = {line[0]: float(line[-1]) for line in lines["Variable", kind]}
            assert all(abs(value) < 1e-3 for value in last.values()), last
        used = max(float(line[-1]) for line in lines["Variable", "Used (MB)"])
        assert 0 < used <= max(sizes.values()) / 1e6, used
    measured = trace(folder / "run.paje", "run cholesky --n 512 --tile 64 --emulate free --gpus 1")
    assert parse(measured)["State", "Worker State"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_perfetto(pathlib.Path(folder))
        test_paje(pathlib.Path(folder))


if __name__ == "__main__":
    main()
