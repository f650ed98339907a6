# SPDX-License-Identifier: Apache-2.0
"""Messages of simulated nodes, compared with the fewest that the distribution allows: each version
of each tile once to every other node that reads it. These are counted by walking through the
algorithms as in books, not through the tasks that duet submits."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DUET = os.path.abspath(os.environ.get("DUET") or sys.argv[1])
IDGRAF = pathlib.Path(__file__).parent.parent / "platforms" / "idgraf.json"
TILE, INNER, STEPS = 320, 32, 5


class Walk:
    """Walks through the tasks of a program in their order, over a grid of nodes; each runs at the
    owner of the first datum that it writes."""

    def __init__(self, rows, cols, tile_bytes):
        self.grid, self.bytes_of = (rows, cols), tile_bytes
        self.holders, self.messages, self.bytes = {}, 0, 0

    def at(self, i, j):
        return i % self.grid[0] * self.grid[1] + j % self.grid[1]

    def owner(self, tile):
        return self.at(*tile[-2:])

    def bring(self, tile, node):
        holders = self.holders.setdefault(tile, {self.owner(tile)})
        if node not in holders:
            holders.add(node)
            self.messages += 1
            self.bytes += self.bytes_of(*tile)

    def task(self, reads, updates, writes=()):
        node = self.owner((*updates, *writes)[0])
        for tile in (*reads, *updates):
            self.bring(tile, node)
        for tile in (*updates, *writes):
            self.holders[tile] = {node}

    def home(self, tile):
        """Forgets the copies of a tile at its factorising node, where it is not needed any more."""
        self.bring(tile, self.owner(tile))


def cholesky(walk, t):
    for k in range(t):
        walk.task([], [("A", k, k)])
        for m in range(k + 1, t):
            walk.task([("A", k, k)], [("A", m, k)])
        for n in range(k + 1, t):
            for m in range(n, t):
                walk.task([("A", m, k), ("A", n, k)], [("A", m, n)])


def lu(walk, t):
    for k in range(t):
        walk.task([], [("A", k, k)])
        for m in range(k + 1, t):
            walk.task([("A", k, k)], [("A", m, k)])
            walk.task([("A", k, k)], [("A", k, m)])
        for m in range(k + 1, t):
            for n in range(k + 1, t):
                walk.task([("A", m, k), ("A", k, n)], [("A", m, n)])


def qr(walk, t):
    for k in range(t):
        walk.task([], [("A", k, k)], [("T", k, k)])
        for n in range(k + 1, t):
            walk.task([("A", k, k), ("T", k, k)], [("A", k, n)])
        for m in range(k + 1, t):
            walk.task([], [("A", k, k), ("A", m, k)], [("T", m, k)])
            for n in range(k + 1, t):
                walk.task([("A", m, k), ("T", m, k)], [("A", k, n), ("A", m, n)])
        for m in range(k, t):
            for tile in ("A", k, m), ("A", m, k), ("T", m, k):
                walk.home(tile)


def gemm(walk, t):
    for i in range(t):
        for j in range(t):
            for l in range(t):
                walk.task([("A", i, l), ("B", l, j)], [("C", i, j)])


class Rectangles(Walk):
    """Rectangles of blocks per node. A border is a tile of the block that writes it."""

    def __init__(self, rows, cols, t, border_bytes):
        super().__init__(rows, cols, lambda *_: border_bytes)
        self.t = t

    def owner(self, tile):
        return self.at(*(min(max(at, 0), self.t - 1) * nodes // self.t
                         for at, nodes in zip(tile[-2:], self.grid)))


def jacobi2d(walk, t, steps):
    for step in range(steps):
        old, new = step % 2, 1 - step % 2
        for i in range(t):
            for j in range(t):
                walk.task([("block", old, i, j), ("south", old, i - 1, j), ("north", old, i + 1, j),
                           ("east", old, i, j - 1), ("west", old, i, j + 1)], [],
                          [(side, new, i, j)
                           for side in ("block", "north", "south", "west", "east")])


def simulate(*words):
    return subprocess.run([DUET, "simulate", *words, "--platform", "machine.json", "--tile",
                           str(TILE), "--gpus", "2", "--json"], capture_output=True, text=True,
                          check=False)


def check(name, t, grid, walk, *words):
    """Checks messages and bytes of a workload on t x t tiles."""
    nodes = "x".join(map(str, grid))
    result = simulate(name, "--n", str(t * TILE), "--nodes", nodes, "--network",
                      "switch:100Gbps,1us", *words)
    assert result.returncode == 0, result
    sent = json.loads(result.stdout)["runs"][0]["nodes"]
    assert (sent["messages"], sent["bytes"]) == (walk.messages, walk.bytes), (name, nodes, sent,
                                                                              walk.messages)


def bytes_of(matrix, *_):
    return (INNER if matrix == "T" else TILE) * TILE * 8


def bytes_with_pivots(matrix, *_):
    return (INNER + 1 if matrix == "T" else TILE) * TILE * 8


os.chdir(tempfile.mkdtemp())
machine = json.loads(IDGRAF.read_text(encoding="utf-8"))
machine["curves"] += [{**curve, "kernel": "djacobi2d"} for curve in machine["curves"]
                      if curve["kernel"] == "dgemm"]
pathlib.Path("machine.json").write_text(json.dumps(machine), encoding="utf-8")
for grid in (2, 2), (1, 3), (3, 1), (4, 3):
    for name, program, tile in (("cholesky", cholesky, bytes_of), ("lu", lu, bytes_of),
                                ("qr", qr, bytes_of), ("lu-incremental", qr, bytes_with_pivots),
                                ("gemm", gemm, bytes_of)):
        walked = Walk(*grid, tile)
        program(walked, 7)
        assert walked.messages > 20
        check(name, 7, grid, walked)
    walked = Rectangles(*grid, 8, TILE * 8)
    jacobi2d(walked, 8, STEPS)
    check("jacobi2d", 8, grid, walked, "--param", f"iterations={STEPS}", "--extrapolate")

# the table of docs/nodes.md
PAGE = (pathlib.Path(__file__).parent.parent / "docs" / "nodes.md").read_text(encoding="utf-8")
for name, program in ("cholesky", cholesky), ("lu", lu), ("gemm", gemm):
    [row] = re.findall(rf"^\| `{name}` \|([\d ,|]+)\|$", PAGE, re.MULTILINE)
    walks = [Walk(*grid, bytes_of) for grid in ((2, 2), (1, 4), (4, 1))]
    for walked in walks:
        program(walked, 20)
    assert [f"{walked.messages:,}" for walked in walks] == row.replace(" ", "").split("|"), name

# workloads dealt out in turn: random graphs, and files, of which tasks without data are refused
GRAPHS = pathlib.Path(__file__).parent.parent / "examples" / "graphs"
for words, status, says in ((["layered", "--n", "200"], 0, ""),
                            ([GRAPHS / "cholesky.rec"], 0, ""),
                            ([GRAPHS / "diamond.json"], 2, "task 3 comes after another without"),
                            ([GRAPHS / "rand0000.stg"], 2, "task '1' uses no data")):
    several = subprocess.run([DUET, "simulate", *words, "--platform", "machine.json", "--nodes",
                              "2", "--network", "switch:100Gbps,1us", "--json"],
                             capture_output=True, text=True, check=False)
    assert several.returncode == status and says in several.stderr, several
    assert status or json.loads(several.stdout)["runs"][0]["nodes"]["messages"] > 0, several
