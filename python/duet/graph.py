# SPDX-License-Identifier: Apache-2.0
"""Task graphs: from dicts, networkx and Dask, from and to files (docs/formats.md)."""

import graphlib
import heapq
import json
import numbers
import pathlib
from collections.abc import Mapping

from duet.command import Error, call_on


def kernel_name(name):
    """A name as a kernel may have it, of at most 31 bytes."""
    return str(name).encode()[:31].decode(errors="ignore") or "task"


class Graph:
    """A task graph, to be given to duet.simulate and the others in place of a workload."""

    def __init__(self, name="graph", architectures=(), kernels=(), data=(), tasks=()):
        self.name = name
        self.architectures = list(architectures)  # columns of the tasks' seconds
        self.kernels, self.data, self.tasks = list(kernels), list(data), list(tasks)
        self._named = {one["name"]: number for number, one in enumerate(self.data) if "name" in one}

    @classmethod
    def of_json(cls, value):
        """A Graph of an object in duet's format."""
        return cls(value.get("name") or "graph", value.get("architectures", ()), value["kernels"],
                   value.get("data", ()), value["tasks"])

    def json(self):
        """The graph as an object in duet's format."""
        tasks = [task if not isinstance(task.get("seconds"), dict) else
                 {**task, "seconds": [task["seconds"].get(arch) for arch in self.architectures]}
                 for task in self.tasks]
        return {"format": "duet-graph", "schema": 1, "name": self.name,
                "architectures": self.architectures, "kernels": self.kernels, "data": self.data,
                "tasks": tasks}

    def save(self, path, format=None, **options):
        """Writes a file, in the format of `duet export` that is named; else in duet's own."""
        if format not in (None, "json"):
            return export(self, out=path, format=format, **options)
        path = pathlib.Path(path)
        path.write_text(json.dumps(self.json()), encoding="utf-8")
        return path

    def add_data(self, name=None, bytes=0, initial=True):
        """Adds data, and returns its number. Not `initial`: its first writer makes it."""
        one = {} if name is None else {"name": str(name)}
        if bytes:
            one["bytes"] = int(bytes)
        if not initial:
            one["initial"] = False
        self.data.append(one)
        if name is not None:
            self._named[str(name)] = len(self.data) - 1
        return len(self.data) - 1

    def add(self, kernel, seconds=None, *, after=(), name=None, where=None, priority=0, work=0,
            r=(), w=(), rw=(), commute=(), reduce=(), scratch=()):
        """Adds a task, and returns its number. `seconds`: a number, or a dict by architecture or
        backend ("cpu", "cuda", "c2050"). `after`: numbers of tasks that have to end before. `r`,
        `w`, `rw` and so on: numbers or names of data that it accesses in this mode."""
        kernel = kernel_name(kernel)
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        task = {"kernel": self.kernels.index(kernel)}
        modes = {"r": r, "w": w, "rw": rw, "commute": commute, "reduce": reduce, "scratch": scratch}
        pairs = [[self._number(one, mode), mode] for mode, names in modes.items()
                 for one in _list(names)]
        if pairs:
            task["accesses"] = pairs
        if after:
            task["after"] = sorted(set(after))
        if seconds is not None:
            by_arch = seconds if isinstance(seconds, Mapping) else {"reference": seconds}
            if not all(one is None or isinstance(one, numbers.Real) and one >= 0
                       for one in by_arch.values()):
                raise Error(f"task {name or kernel!r}: seconds are a number from 0, or a dict of "
                            f"such by architecture, not {seconds!r}")
            self.architectures += [arch for arch in by_arch if arch not in self.architectures]
            task["seconds"] = dict(by_arch)
        optional = {"name": None if name is None else str(name), "where": where,
                    "priority": priority, "work": work}
        task.update({key: value for key, value in optional.items() if value})
        self.tasks.append(task)
        return len(self.tasks) - 1

    def _number(self, data, mode):
        if isinstance(data, int):
            if not 0 <= data < len(self.data):
                raise Error(f"there is no data number {data}: add_data() returns numbers")
            return data
        known = self._named.get(data)
        return self.add_data(data, initial=mode != "w") if known is None else known


def graph(source, name="graph", **defaults):
    """A Graph of a networkx.DiGraph, of a dict, whose tasks by name are dicts of the arguments of
    Graph.add, or of a Dask graph or collection. `defaults` are for tasks that lack a member, as in
    duet.graph(x, seconds=0.01)."""
    if hasattr(source, "__dask_graph__"):  # first: some of Dask's have whatever one asks for
        return _of_dask(dict(source.__dask_graph__()), name, defaults)
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        return _of_networkx(source, name, defaults)
    if not isinstance(source, Mapping):
        raise TypeError(f"an object of type {type(source).__name__} is no task graph: give a dict, "
                        "a networkx.DiGraph or a Dask graph")
    if source.get("format") == "duet-graph":
        return Graph.of_json(source)
    if not all(isinstance(task, Mapping) for task in source.values()):
        return _of_dask(source, name, defaults)
    return _of_tasks({key: dict(task) for key, task in source.items()}, {}, name, defaults)


def _ordered(before):
    """Names so that each comes behind those before it; the order given, as far as possible."""
    for key, others in before.items():
        for other in others:
            if other not in before:
                raise Error(f"task {key!r} comes after {other!r}, which is no task")
    sorter = graphlib.TopologicalSorter(before)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        raise Error(f"a cycle of tasks: {', '.join(map(repr, error.args[1]))}") from None
    keys, order, ready = list(before), [], []
    place = {key: number for number, key in enumerate(keys)}
    while sorter.is_active():
        for key in sorter.get_ready():
            heapq.heappush(ready, place[key])
        order.append(keys[heapq.heappop(ready)])
        sorter.done(order[-1])
    return order


def _list(value):
    return [] if value is None else [value] if isinstance(value, (str, int)) else list(value)


def _of_tasks(tasks, edges, name, defaults):
    """`tasks`: members by name, with "after"; `edges`: bytes by pair of names."""
    self, numbers = Graph(name), {}
    sent = {key: {} for key in tasks}  # data that a task makes, by its bytes
    received = {key: {} for key in tasks}  # bytes of what it gets, by the task that made them
    for (first, second), size in edges.items():
        if size:
            sent[first][size] = None
            received[second][first] = size
    before = {key: _list(task.get("after")) for key, task in tasks.items()}
    for key in _ordered(before):
        task = {**defaults, "kernel": "task", "name": key, **tasks[key]}
        for other in task.keys() - MEMBERS:
            raise Error(f"task {key!r} has no member {other!r}: known are "
                        f"{', '.join(sorted(MEMBERS))}")
        task["after"] = [numbers[other] for other in before[key] if other not in received[key]]
        task["r"] = _list(task.get("r")) + [sent[first][size]
                                            for first, size in received[key].items()]
        for size in sent[key]:  # one piece for all successors that get as much
            sent[key][size] = self.add_data(f"{key}:{size}", size, initial=False)
        task["w"] = _list(task.get("w")) + list(sent[key].values())
        numbers[key] = self.add(**task)
    return self


# Of tasks. Attributes of networkx' nodes are these but for `after`, and what else there may be.
MEMBERS = {"after", "kernel", "seconds", "name", "where", "priority", "work", "r", "w", "rw",
           "commute", "reduce", "scratch"}


def _of_networkx(source, name, defaults):
    if not source.is_directed():
        raise Error("an undirected graph is no task graph: give a networkx.DiGraph")
    tasks = {key: {**{member: value for member, value in members.items() if member in MEMBERS},
                   "after": list(source.predecessors(key))}
             for key, members in source.nodes(data=True)}
    edges = {}
    for first, second, members in source.edges(data=True):
        size = next((members[key] for key in ("bytes", "size", "weight") if key in members), 0)
        edges[first, second] = edges.get((first, second), 0) + int(size)
    return _of_tasks(tasks, edges, name, defaults)


def _dask_needs(value, keys):
    """Keys of a Dask graph that a computation names, in its arguments at any depth."""
    if hasattr(value, "dependencies") and not callable(value.dependencies):  # Dask since 2024.12
        return list(value.dependencies)
    try:
        if value in keys:
            return [value]
    except TypeError:  # not hashable, so no key
        pass
    inner = value.values() if isinstance(value, dict) else value
    return ([key for one in inner for key in _dask_needs(one, keys)]
            if isinstance(value, (tuple, list, dict)) else [])


def _of_dask(source, name, defaults):
    tasks = {}
    for key, value in source.items():
        computes = isinstance(value, tuple) and value and callable(value[0])
        function = getattr(value, "func", value[0] if computes else None)
        # without a function: a constant, or another name of a result
        task = {"kernel": "data", "seconds": 0} if function is None else {
            "kernel": getattr(function, "__name__", "task")}
        needs = _dask_needs(value[1:] if computes else value, source)
        tasks[key] = {**task, "after": [one for one in needs if one != key]}
    return _of_tasks(tasks, {}, name, defaults)


def export(workload=None, *, program=None, out=None, **options):
    """`duet export`: the graph of a workload, a program or a file; written to `out`, else a Graph
    (of `format="json"`) or the text."""
    text = call_on("export", workload, program, {**options, "out": out})
    if out is not None:
        return pathlib.Path(out)
    return Graph.of_json(json.loads(text)) if options.get("format") in (None, "json") else text


def read_graph(path):
    """A Graph of a file in any format that duet reads (docs/graphs.md)."""
    return export(pathlib.Path(path))
