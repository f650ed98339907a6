# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/gpu.py: what is checked and measured, in which order."""

import json
import os
import pathlib
import shutil
import statistics

ELEMENT = {"d": 8, "s": 4}
PANELS = {"cholesky": "potrf", "lu": "getrf"}  # kernels that stay on CPUs, unless told otherwise
LAZY = {"cpus": 1, "set_arch": True, "policy": "locality-aware"}  # all kernels on the GPU


def rate(row):
    """Until the results are where they began, where that is known."""
    return row.get("back") or row["median"]


def best(rows):
    return max(rows, key=rate, default=None)


def fitting_workers(session):
    """Of the numbers of CPU workers that are asked for, those that leave the GPU a core."""
    return [count for count in session.options.workers if count < max(session.cores, 2)] or [1]


def slab_of(elements, precision):
    """As an option of duet, and a little more than these elements."""
    return f"{1 + ELEMENT[precision] * elements // (1 << 20)}MiB"


def matrices_fit(session, n, precision, count):
    return session.fits(count * ELEMENT[precision] * n * n, f"n {n}, precision {precision}")


# ------------------------------------------------------------------------------------------------
# Checks

def programs_of(session, pattern):
    tests = session.options.tests
    return [path for path in sorted(tests.glob(pattern) if tests else [])
            if path.is_file() and os.access(path, os.X_OK)]


def tests(session):
    for path in programs_of(session, "*"):
        session.check(path.name, [path])


def memcheck(session):
    """The backends' tests under NVIDIA's tool. Calls that CUDA refuses are part of them."""
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    places = [os.environ["PATH"], *(str(pathlib.Path(path).parent / "bin") for path in libraries)]
    tool = shutil.which("compute-sanitizer", path=":".join(places))
    if not tool:
        session.check("memcheck", ["sh", "-c", "echo compute-sanitizer is not here; exit 77"])
        return
    for path in programs_of(session, "backends.conformance*"):
        session.check(f"memcheck-{path.name}", [tool, "--tool", "memcheck", "--report-api-errors",
                                                "no", "--error-exitcode", 99, path], 300)


def verify(session):
    """Every workload in both precisions, with all of the GPU's memory and with little of it."""
    quick = session.options.quick
    edges = ["--n", 512, "--tile", 128] if quick else ["--n", 4096, "--tile", 512]
    policies = ["--policy", "ws,locality-aware,heft"]
    little = {"": [], "-small-memory": ["--gpu-memory", "2MiB" if quick else "64MiB"]}
    cases = {f"{workload}-{precision}{name}": [workload, *edges, "--precision", precision,
                                               *policies, *memory]
             for workload in ("cholesky", "lu", "lu-pivot", "gemm", "jacobi2d")
             for precision in "sd" for name, memory in little.items()}
    cases["saxpy"] = ["saxpy", "--n", 1 << 22, "--tile", 1 << 16]
    cases["cholesky-on-gpu"] = ["cholesky", *edges, "--param", "potrf=any", "--set-arch"]
    cases["cholesky-columns"] = ["cholesky", *edges, "--param", "layout=lapack"]
    for name, words in cases.items():
        session.check(f"verify-{name}", [*session.options.duet, "run", *words, "--gpus", 1,
                                         "--cpus", 1, "--reps", 2, "--verify", "--quiet"])


# ------------------------------------------------------------------------------------------------
# Copies, the runtime's own operations, and what a task costs

def calibrate(session):
    """What `duet calibrate` measures beside kernels. The machine that it writes stays, to be
    simulated."""
    options = session.options
    path = options.output.parent / "machine.json"
    words = ["calibrate", *(["gemm", "--tile", 64] if options.quick else []), "--gpus", 1, "--json",
             "--quiet", "--out", path, "--replace", "--budget",
             f"{max(1, int((1 if options.quick else 60) * min(1, session.left() / 90)))}s"]
    facts = {"peer": "duet", "command": f"duet {' '.join(map(str, words))}", "verified": None}

    def bandwidths(name, *figures):
        return {"what": name, "unit": "GB/s", "values": [1e-9 * value for value in figures],
                **facts}

    def measure():
        report = json.loads(session.execute([*options.duet, *words]))
        copies = report["copies"]
        name = [f"copy from {copy['source']} to {copy['destination']}" for copy in copies]
        rows = [bandwidths(name[i], copy["bandwidth_Bps"]) for i, copy in enumerate(copies)]
        rows += [{"what": f"{name[i]}, latency", "unit": "us", "values": [1e6 * copy["latency_s"]],
                  **facts} for i, copy in enumerate(copies)]
        rows += [bandwidths(f"{name[pair['first']]} and {name[pair['second']]}, together",
                            pair["first_Bps"] + pair["second_Bps"])
                 for pair in report["together"]]
        rows += [{"what": f"{cost['name']}: {cost['description']}", "unit": "us", **facts,
                  "values": [1e6 * cost[key] for key in ("quartile1_s", "median_s", "quartile3_s")]}
                 for cost in report["costs"] if cost["median_s"]]
        return rows
    session.attempt(facts["command"], measure)


def overhead(session):
    options = session.options
    size = {"independent": options.tasks, "chain": options.tasks, "cholesky": options.tiles_a_side}
    for benchmark in size:
        for window in 2, 8:
            for streams in 1, 4:
                variables = {"DUET_GPU_WINDOW": str(window), "DUET_GPU_WINDOW_SHORT": str(window),
                             "DUET_GPU_STREAMS": str(streams)}
                session.program("overhead_cuda", [benchmark, 1, options.reps, size[benchmark]],
                                variables, peer="duet", window=window, streams=streams,
                                verified=True)


# ------------------------------------------------------------------------------------------------
# The choice of options, one run each

# of the time that a part has left, what one choice may take
CHOICE_SHARE = 1 / 6


def choose(session, workload, stages, **fixed):
    """The best of some options (name: values): one after the other is tried, with the best of those
    before it and the first of those behind it, by one run each while there is time. All are rows of
    the choice. {} if nothing ran."""
    begin, longest, rates, omitted = session.left(), 0, {}, []
    chosen = {key: values[0] for key, values in stages.items()}
    for key, values in stages.items():
        for value in values:
            variant, before = {**chosen, key: value}, session.left()
            if str(variant) in rates:
                continue
            if rates and begin - before + longest > CHOICE_SHARE * begin:
                omitted.append(variant)
                continue
            found = session.duet(workload, choice=True, **fixed, **variant)
            longest = max(longest, before - session.left())
            rates[str(variant)] = (rate(best(found)) if found else 0, variant)
        chosen = max(rates.values(), key=lambda pair: pair[0])[1] if rates else chosen
    if omitted:
        session.omit(f"choice of {workload} {fixed}: {omitted}",
                     "no time left for it beside the measurements")
    return chosen if any(pair[0] for pair in rates.values()) else {}


# ------------------------------------------------------------------------------------------------
# GEMM

def gemm(session):
    options = session.options
    middle = options.gemm_n[min(1, len(options.gemm_n) - 1)]
    for precision in options.precisions:
        common = {"precision": precision, **LAZY}
        slab = slab_of(options.slab_elements, precision)
        # the simulator says that both, how far ahead data is fetched and blocks, matter where the
        # bus does
        chosen = choose(session, "gemm",
                        {"tile": [tile for tile in options.gemm_tiles if tile < middle],
                         "gpu_window": options.gemm_windows,
                         "params": [[f"block={block}"] for block in options.gemm_blocks]},
                        n=middle, gpu_memory=slab, **common)
        for n in options.gemm_n:
            if not matrices_fit(session, n, precision, 4):
                continue
            session.peer("gemm", n=n, precision=precision)
            for block in options.blocks:
                session.peer("gemm-xt", n=n, precision=precision, block=block)
            if chosen:
                session.duet("gemm", n=n, gpu_memory=slab, **chosen, **common)
                session.duet("gemm", n=n, tile=chosen["tile"], **common)
        if chosen:
            session.duet("gemm", n=options.gemm_n[0], tile=chosen["tile"], precision=precision,
                         cpus=max(fitting_workers(session)), policy="heft")


# ------------------------------------------------------------------------------------------------
# Factorisations

def larger(session, workload, n, tile, common):
    """A larger matrix with what was best, in the whole of the GPU's memory and out of core."""
    windows = session.options.windows
    common = {"n": n, **common}
    tiles = [edge for edge in (tile, 2 * tile) if edge in (tile, n) or edge < n]
    inside = choose(session, workload, {"tile": tiles, "gpu_window": windows}, **common)
    inside = inside or {"tile": tile, "gpu_window": windows[0]}
    session.duet(workload, **inside, **common)
    session.duet(workload, set_arch=True, **inside, **common)
    # a quarter of the matrix
    tile = inside["tile"]
    common["gpu_memory"] = slab_of(max(n * n // 4, 24 * tile ** 2), common["precision"])
    outside = choose(session, workload, {"gpu_window": [inside["gpu_window"], *windows]}, tile=tile,
                     **common)
    session.duet(workload, **{**inside, **outside}, **common)


def factorisation(session, workload, precision):
    options, most = session.options, max(fitting_workers(session))
    same = {"n": options.matrix_n, "precision": precision}
    if not session.rows(part="gemm", peer="cublas", precision=precision, copies=False):
        session.peer("gemm", n=options.large_n[-1], precision=precision)
    session.peer(workload, **same)
    tile = choose(session, workload, {"tile": [tile for tile in options.tiles
                                               if tile < options.matrix_n]},
                  cpus=most, policy="locality-aware", **same).get("tile")
    if not tile:
        return
    for cpus in sorted(fitting_workers(session), reverse=True):
        session.duet(workload, tile=tile, cpus=cpus, policy=",".join(options.policies), **same)
    chosen = best(session.rows(workload=workload, peer="duet", choice=None, **same))
    if chosen:
        common = {"precision": precision, "cpus": chosen["cpus"], "policy": chosen["policy"]}
        for n in options.large_n:
            if matrices_fit(session, n, precision, 2):
                session.peer(workload, n=n, precision=precision)
                larger(session, workload, n, tile, common)
        session.duet(workload, n=options.matrix_n, tile=tile, params=[f"{PANELS[workload]}=any"],
                     **common)
    if workload == "lu":
        session.duet("lu-pivot", tile=tile, cpus=most, policy="locality-aware", **same)


def cholesky(session):
    for precision in session.options.precisions:
        factorisation(session, "cholesky", precision)


def lu(session):
    for precision in session.options.precisions:
        factorisation(session, "lu", precision)


# ------------------------------------------------------------------------------------------------
# Overlap, page-locking, several kernels at once; what memory limits

def overlap(session):
    options = session.options
    cpus, tile = max(fitting_workers(session)), options.tiles[min(1, len(options.tiles) - 1)]
    for workload, n, edge, matrices in (("gemm", options.gemm_n[0], options.gemm_tiles[0], 3),
                                        ("cholesky", options.matrix_n, tile, 1)):
        # a quarter of the data, so that copies go on all the time
        slab = slab_of(max(matrices * n * n // 4, 24 * edge * edge), "d")
        for variant in ({}, {"gpu_window": 1}, {"gpu_window": 4}, {"gpu_window": 16},
                        {"gpu_streams": 4}, {"pin": "none"}):
            session.duet(workload, n=n, tile=edge, precision="d",
                         **{**LAZY, "cpus": cpus, "gpu_memory": slab, **variant})


def memory(session):
    """As the peers count: bytes that a kernel in core reads and writes."""
    options = session.options
    for precision in options.precisions:
        element, n, edge = ELEMENT[precision], options.saxpy_n, options.jacobi_n
        if session.fits(3 * element * n, f"saxpy of {n}"):
            session.peer("saxpy", n=n, precision=precision)
            for rounds in 1, 10:
                session.duet("saxpy", 3.0 * element * n * rounds, n=n, tile=n // 32,
                             precision=precision, params=[f"iterations={rounds}"], **LAZY)
        if session.fits(2 * element * edge * edge, f"jacobi2d of {edge}"):
            # one tile: all of it in the GPU's memory, copied before and after
            for pieces in 1, 4, 8:
                session.duet("jacobi2d", 20.0 * element * edge * edge, n=edge, tile=edge // pieces,
                             precision=precision, params=["iterations=10"], **LAZY)


# ------------------------------------------------------------------------------------------------

# weights in time
CHECKS = {tests: 20, memcheck: 10, verify: 20}
FIGURES = {calibrate: 10, overhead: 8, gemm: 34, cholesky: 22, lu: 22, overlap: 10,
           memory: 8}
PARTS = {part.__name__: (part, weight) for part, weight in {**CHECKS, **FIGURES}.items()}
CHECKS = {part.__name__ for part in CHECKS}


def compare(session, text, ours, theirs, bound):
    """A goal: duet's best rate over the best of the others, of the largest n that both have or,
    where the others are a limit that n hardly matters to, of duet's largest."""
    sizes = {row["n"] for row in ours}
    n = max(sizes & {row["n"] for row in theirs} or sizes, default=None)
    theirs = [row for row in theirs if row["n"] == n] or theirs
    if n and theirs:
        figure = rate(best([row for row in ours if row["n"] == n])) / best(theirs)["median"]
        session.record["goals"].append({"goal": text.format(n=n), "figure": figure,
                                        "bound": bound, "reached": figure >= bound})


def goals(session):
    """What was to be reached, as far as it was measured."""
    session.record["goals"] = []
    for precision in "d", "s":
        def rows(part, peer, **facts):
            return session.rows(part=part, peer=peer, precision=precision, choice=None, **facts)
        duet = [row for row in rows("gemm", "duet") if row["slab"]]
        core, title = rows("gemm", "cublas", copies=False), f"{precision}gemm"
        same = {row["n"] for row in duet}
        compare(session, f"{title} out of core, n {{n}}: share of cuBLAS in core", duet,
                [row for row in core if row["n"] in same], 0.95)
        compare(session, f"{title} out of core, n {{n}}: over cuBLASXt", duet,
                [row for row in rows("gemm", "cublasxt") if row["n"] in same], 1.0)
        for workload in PANELS:
            ours = rows(workload, "duet", workload=workload)
            ours = [row for row in ours if row["n"] == max(each["n"] for each in ours)]
            limit = best(core + rows(workload, "cublas", copies=False))
            compare(session, f"{workload} {precision}, n {{n}}: share of {title} in core", ours,
                    [{**limit, "n": 0}] if limit else [], 0.85)
            n = ours[0]["n"] if ours else 0
            compare(session, f"{workload} {precision}, n {{n}}: over cuSOLVER with copies", ours,
                    rows(workload, "cusolver", n=n, copies=True), 1.0)


def run(session, save):
    """Makes the chosen parts and calls `save` with the record after each of them, so that what
    ends this program does not end the figures. Returns the record."""
    chosen = [name for name in PARTS if name in session.options.only]
    weights = [PARTS[name][1] for name in chosen]
    for place, name in enumerate(chosen):
        session.begin(name, weights[place] / sum(weights[place:]))
        session.attempt(name, lambda name=name: PARTS[name][0](session))
        goals(session)
        rows = session.record["rows"]
        session.record["verified"] = {
            "yes": sum(row.get("verified") is True for row in rows),
            "not_asked": sum(row.get("verified") is None for row in rows),
            "spread": statistics.median([(row["most"] - row["least"]) / row["median"]
                                         for row in rows if row["median"]] or [0])}
        save(session.finish())
    return session.record
