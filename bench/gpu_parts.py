# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/gpu.py: what is measured, in which order."""

import json
import statistics

from gpu_session import Stopped, back, size

ELEMENT = {"d": 8, "s": 4}
SOLVERS = {"cholesky": "potrf", "lu": "getrf"}


def rate(row):
    """Until the results are where they began, where that is known."""
    return row.get("back") or row["median"]


def best(rows):
    return max(rows, key=rate, default=None)


def most_cpus(session):
    """Of the numbers of CPU workers that are asked for, the largest that leaves the GPU a core."""
    return max(fitting_workers(session))


def fitting_workers(session):
    fitting = [count for count in session.options.workers if count < max(session.cores, 2)]
    return fitting or [1]


def peer_fits(session, n, precision, matrices):
    return session.fits(matrices * ELEMENT[precision] * n * n, f"n {n}, precision {precision}")


# ------------------------------------------------------------------------------------------------
# CUDA itself

def info(session):
    def text():
        return session.execute([*session.options.duet, "info"])
    session.record["info"] = session.attempt("duet info", text) or ""


def copies(session):
    def measure():
        for line in session.peer_lines("copies", n=session.options.copy_bytes,
                                       repeats=session.options.reps + 2):
            ways = 2 if line["direction"] == "both" else 1
            session.add([1e-9 * ways * line["bytes"] / s for s in line["seconds"]], "GB/s",
                        peer="cuda", memory=line["memory"], direction=line["direction"],
                        bytes=line["bytes"], verified=line["verified"], command=line["command"])
    session.attempt("copies", measure)


def costs(session):
    def measure():
        for line in session.peer_lines("costs", repeats=session.options.reps + 2):
            session.add([1e6 * s for s in line["seconds"]], "us", peer="cuda", call=line["call"],
                        command=line["command"])
    session.attempt("costs", measure)


# ------------------------------------------------------------------------------------------------
# What a task costs

def overhead(session):
    options = session.options
    if not options.overhead:
        raise Stopped("cuda_overhead is not there (built where the CUDA toolkit is)")
    for benchmark in "nothing", "memset", "chain":
        for window in 2, 8:
            for streams in 1, 4:
                variables = {"DUET_GPU_WINDOW": str(window), "DUET_GPU_WINDOW_SHORT": str(window),
                             "DUET_GPU_STREAMS": str(streams), "DUET_GPUS": "1", "DUET_CPUS": "1"}
                command = [options.overhead, benchmark, options.tasks, options.reps]

                def measure(command=command, variables=variables, benchmark=benchmark,
                            window=window, streams=streams):
                    lines = [json.loads(line) for line in
                             session.execute(command, variables).splitlines()]
                    shown = [f"{key}={value}" for key, value in variables.items()]
                    session.add([line["ns_per_task"] for line in lines], "ns/task", peer="duet",
                                benchmark=benchmark, window=window, streams=streams,
                                tasks=options.tasks, verified=lines[0]["verified"],
                                command=" ".join([*shown, "cuda_overhead",
                                                  *map(str, command[1:])]))
                session.attempt(f"overhead {benchmark} window {window} streams {streams}", measure)


# ------------------------------------------------------------------------------------------------
# The choice of options, one run each

# of the time that a part has left, what one choice may take
CHOICE_SHARE = 1 / 6


def choose(session, workload, variants, tried=(0, {}), **options):
    """Runs `workload` once with each of the variants (options in a dict, beside those of all) while
    there is time for it, and returns the rate of the best and that variant: `tried`, which is an
    earlier choice, if none is better. (0, {}) if nothing ran. All are rows of the choice."""
    begin, longest = session.left(), 0
    for place, variant in enumerate(variants):
        before = session.left()
        if place and begin - before + longest > CHOICE_SHARE * begin:
            session.omit(f"choice of {workload} {options}: {variants[place:]}",
                         "no time left for it beside the measurements")
            break
        found = session.duet(workload, keep=False, reps=1, verify=False, **{**options, **variant})
        longest = max(longest, before - session.left())
        for row in found:
            session.record["rows"].append({**row, "part": session.part, "choice": True,
                                           "least": row["median"], "most": row["median"]})
        if found:
            tried = max(tried, (rate(best(found)), variant), key=lambda pair: pair[0])
    return tried


def others(chosen, key, values):
    """The chosen variant with each of the other values of an option: what is left to be tried."""
    return [{**chosen[1], key: value} for value in values if value != chosen[1][key]]


def choose_tile(session, workload, n, precision, tiles, **options):
    variants = [{"tile": tile} for tile in tiles if tile < n]
    return choose(session, workload, variants, n=n, precision=precision,
                  **options)[1].get("tile")


# ------------------------------------------------------------------------------------------------
# GEMM

def choose_gemm(session, precision, slab, common):
    """Options of the product out of core: the tile, then how far ahead data is fetched, then in
    blocks of how many tiles it is computed; the simulator says that both matter where the bus
    does. {} if nothing ran."""
    options = session.options
    n = options.gemm_n[min(1, len(options.gemm_n) - 1)]
    windows, blocks = options.gemm_windows, [[f"block={block}"] for block in options.gemm_blocks]
    variants = [{"tile": tile, "gpu_window": windows[0], "params": blocks[0]}
                for tile in options.gemm_tiles if tile < n]
    fixed = {"n": n, "gpu_memory": slab, **common}
    chosen = choose(session, "gemm", variants, **fixed)
    for key, values in ("gpu_window", windows), ("params", blocks):
        if chosen[1]:
            chosen = choose(session, "gemm", others(chosen, key, values), chosen, **fixed)
    return chosen[1]


def gemm(session):
    options, workers = session.options, most_cpus(session)
    for precision in options.precisions:
        # --gpu-memory of single precision: as many tiles as in double
        slab = f"{size(options.slab) * ELEMENT[precision] // 8 // (1 << 20)}MiB"
        common = {"precision": precision, "cpus": 1, "set_arch": True,
                  "policy": options.gemm_policy}
        chosen = choose_gemm(session, precision, slab, common)
        for n in options.gemm_n:
            if not peer_fits(session, n, precision, 3):
                continue
            session.peer("gemm", n=n, precision=precision)
            for block in options.blocks:
                session.peer("gemm-xt", n=n, precision=precision, block=block)
            if chosen:
                session.duet("gemm", n=n, gpu_memory=slab, **chosen, **common)
                session.duet("gemm", n=n, tile=chosen["tile"], **common)
        if chosen:
            session.duet("gemm", n=options.gemm_n[0], tile=chosen["tile"], precision=precision,
                         cpus=workers, policy="heft")


# ------------------------------------------------------------------------------------------------
# Factorisations

def matrix(session, workload, precision, tile):
    """Numbers of CPU workers and policies, all at one size."""
    options = session.options
    for cpus in sorted(fitting_workers(session), reverse=True):
        session.duet(workload, n=options.matrix_n, tile=tile, precision=precision, cpus=cpus,
                     policy=",".join(options.policies))


def choose_large(session, workload, tile, common):
    """Tile, then window, of a larger matrix that fits into the GPU's memory."""
    first = session.options.windows[0]
    edges = [tile, 2 * tile] if 2 * tile < common["n"] else [tile]
    variants = [{"tile": edge, "gpu_window": first} for edge in edges]
    chosen = choose(session, workload, variants, (0, variants[0]), **common)
    return choose(session, workload, others(chosen, "gpu_window", session.options.windows), chosen,
                  **common)[1]


def large(session, workload, precision, tile):
    """Larger ones with what was best, in the whole of the GPU's memory and out of core."""
    options = session.options
    chosen = best(session.rows(workload=workload, precision=precision, n=options.matrix_n,
                               choice=None))
    if not chosen:
        return
    cpus, policy = chosen["cpus"], chosen["policy"]
    for n in options.large_n:
        if not peer_fits(session, n, precision, 2):
            continue
        session.peer(SOLVERS[workload], n=n, precision=precision)
        common = {"n": n, "precision": precision, "cpus": cpus, "policy": policy}
        inside = choose_large(session, workload, tile, common)
        session.duet(workload, **inside, **common)
        session.duet(workload, set_arch=True, **inside, **common)
        # a quarter of the matrix
        slab = max(ELEMENT[precision] * n * n // 4, 24 * ELEMENT[precision] * inside["tile"] ** 2)
        common["gpu_memory"] = f"{slab // (1 << 20) + 1}MiB"
        windows = [{**inside, "gpu_window": window} for window in options.windows]
        outside = choose(session, workload, windows, (0, inside), **common)[1]
        session.duet(workload, **outside, **common)
    chosen_param = {"cholesky": "potrf=any", "lu": "getrf=any"}[workload]
    session.duet(workload, n=options.matrix_n, tile=tile, precision=precision, cpus=cpus,
                 policy=policy, params=[chosen_param])


def factorisation(workload):
    def part(session):
        options = session.options
        for precision in options.precisions:
            if not session.rows(part="gemm", peer="cublas", precision=precision, copies=False):
                session.peer("gemm", n=options.large_n[-1], precision=precision)
            session.peer(SOLVERS[workload], n=options.matrix_n, precision=precision)
            tile = choose_tile(session, workload, options.matrix_n, precision, options.tiles,
                               cpus=most_cpus(session), policy="locality-aware")
            if tile:
                matrix(session, workload, precision, tile)
                large(session, workload, precision, tile)
                if workload == "lu":
                    session.duet("lu-pivot", n=options.matrix_n, tile=tile, precision=precision,
                                 cpus=most_cpus(session), policy="locality-aware")
    return part


# ------------------------------------------------------------------------------------------------
# Overlap, page-locking, several kernels at once

def overlap(session):
    options = session.options
    cpus, tile = most_cpus(session), options.tiles[min(1, len(options.tiles) - 1)]
    variants = [{}, {"gpu_window": 1}, {"gpu_window": 4}, {"gpu_window": 16}, {"gpu_streams": 4},
                {"pin": "none"}]
    for workload, n, edge in (("gemm", options.gemm_n[0], options.gemm_tiles[0]),
                              ("cholesky", options.matrix_n, tile)):
        for variant in variants:
            # a quarter of the data, so that copies go on all the time
            matrices = 3 if workload == "gemm" else 1
            slab = max(matrices * 8 * n * n // 4, 24 * 8 * edge * edge) // (1 << 20) + 1
            session.duet(workload, n=n, tile=edge, precision="d", cpus=cpus, set_arch=True,
                         policy="locality-aware", gpu_memory=f"{slab}MiB", **variant)


# ------------------------------------------------------------------------------------------------
# What memory limits

def bytes_rows(session, mode, n, precision):
    def measure():
        for line in session.peer_lines(mode, n=n, precision=precision,
                                       repeats=session.options.reps):
            session.add([1e-9 * line["bytes"] / s for s in line["seconds"]], "GB/s",
                        peer=line["peer"], workload=mode, precision=precision, n=n,
                        copies=line["copies"], verified=line["verified"], command=line["command"])
    session.attempt(f"{mode} {n}", measure)


def duet_bytes(session, workload, bytes_, **options):
    """As the peers count: bytes that a kernel in core reads and writes, over the makespan."""
    def measure():
        for run in session.duet_runs(workload, **options):
            session.add([1e-9 * bytes_ / s for s in run["makespan_s"]["values"]], "GB/s",
                        peer="duet", workload=workload, precision=run["precision"], n=run["n"],
                        tile=run["tile"], cpus=run["cpus"], policy=run["policy"], copies=True,
                        params=",".join(options.get("params", [])) or None,
                        back=back(run, bytes_), to_gpu=run["bytes"]["host_to_device"],
                        to_host=run["bytes"]["device_to_host"],
                        verified=run["verification"]["passed"], command=run["command"])
    session.attempt(f"{workload} {options}", measure)


def memory(session):
    options = session.options
    for precision in options.precisions:
        element = ELEMENT[precision]
        n, edge = options.saxpy_n, options.jacobi_n
        tile = n // 32
        if session.fits(3 * element * n, f"saxpy of {n}"):
            bytes_rows(session, "axpy", n, precision)
            for rounds in 1, 10:
                duet_bytes(session, "saxpy", 3.0 * element * n * rounds, n=n, tile=tile,
                           precision=precision, cpus=1, set_arch=True, policy="locality-aware",
                           params=[f"iterations={rounds}"])
        if session.fits(2 * element * edge * edge, f"jacobi2d of {edge}"):
            bytes_rows(session, "jacobi2d", edge, precision)
            for pieces in 4, 8:
                duet_bytes(session, "jacobi2d", 20.0 * element * edge * edge, n=edge,
                           tile=edge // pieces, precision=precision, cpus=1, set_arch=True,
                           policy="locality-aware", params=["iterations=10"])


# ------------------------------------------------------------------------------------------------

# name: what it measures, its weight in time
PARTS = {
    "info": (info, 1),
    "copies": (copies, 6),
    "costs": (costs, 2),
    "overhead": (overhead, 8),
    "gemm": (gemm, 34),
    "cholesky": (factorisation("cholesky"), 22),
    "lu": (factorisation("lu"), 22),
    "overlap": (overlap, 10),
    "memory": (memory, 8),
}


def goal(session, text, figure, bound):
    session.record["goals"].append({"goal": text, "figure": figure, "bound": bound,
                                    "reached": figure >= bound})


def last_n(rows):
    """Rows of the largest n that all of the lists have; None: there is none."""
    common = set.intersection(*({row["n"] for row in group} for group in rows))
    if not common:
        return None
    n = max(common)
    return n, [best([row for row in group if row["n"] == n]) for group in rows]


def goals(session):
    """What was to be reached, as far as it was measured."""
    session.record["goals"] = []
    for precision in "d", "s":
        duet = [row for row in session.rows(part="gemm", peer="duet", precision=precision,
                                            choice=None) if row["slab"]]
        core = session.rows(part="gemm", peer="cublas", precision=precision, copies=False)
        xt = session.rows(part="gemm", peer="cublasxt", precision=precision)
        compared = last_n([duet, core]) if duet and core else None
        if compared:
            n, (ours, theirs) = compared
            goal(session, f"{precision}gemm out of core, n {n}: share of cuBLAS in core",
                 rate(ours) / theirs["median"], 0.95)
        compared = last_n([duet, xt]) if duet and xt else None
        if compared:
            n, (ours, theirs) = compared
            goal(session, f"{precision}gemm out of core, n {n}: over cuBLASXt",
                 rate(ours) / theirs["median"], 1.0)
        for workload in SOLVERS:
            goals_of_factorisation(session, workload, precision, core)


def goals_of_factorisation(session, workload, precision, core):
    rows = session.rows(part=workload, peer="duet", workload=workload, precision=precision,
                        choice=None)
    reference = best(core + session.rows(part=workload, peer="cublas", precision=precision,
                                         copies=False))
    if not rows or not reference:
        return
    n = max(row["n"] for row in rows)
    ours = best([row for row in rows if row["n"] == n])
    goal(session, f"{workload} {precision}, n {n}: share of {precision}gemm in core",
         rate(ours) / reference["median"], 0.85)
    theirs = best(session.rows(part=workload, peer="cusolver", precision=precision, n=n,
                               copies=True))
    if theirs:
        goal(session, f"{workload} {precision}, n {n}: over cuSOLVER with copies",
             rate(ours) / theirs["median"], 1.0)


def run(session, chosen, save):
    """Measures the chosen parts and calls `save` with the record after each of them, so that what
    ends this program does not end the figures. Returns the record."""
    session.options.gemm_policy = "locality-aware"
    names = [name for name in PARTS if name in chosen]
    weights = [PARTS[name][1] for name in names]
    for place, name in enumerate(names):
        session.begin(name, weights[place] / sum(weights[place:]))
        session.attempt(name, lambda name=name: PARTS[name][0](session))
        goals(session)
        session.record["verified"] = verified(session)
        save(session.finish())
    return session.record


def verified(session):
    rows = session.record["rows"]
    return {"yes": sum(row.get("verified") is True for row in rows),
            "not_asked": sum(row.get("verified") is None for row in rows),
            "spread": statistics.median([(row["most"] - row["least"]) / row["median"]
                                         for row in rows if row["median"]] or [0])}
