# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/gpu.py: checks and measurements, in the order of their worth. Each row has its
seconds on an H100, estimated from data, flops and runs."""

import functools
import json
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ELEMENT = {"d": 8, "s": 4}
PANELS = {"cholesky": "potrf", "lu": "getrf"}  # kernels that stay on CPUs, unless told otherwise
FLOPS = {"gemm": 2.0, "cholesky": 1 / 3, "lu": 2 / 3}  # over n^3
ARRAYS = {"gemm": 3.0, "cholesky": 0.5, "lu": 1.0}  # over n^2
ON_GPU = {"cpus": 1, "set_arch": True}  # kernels that GPUs have run there only
MOST_PEER = 32768  # order of a peer's largest matrix: it is twice in the host's memory
# an H100: flops/s, bytes/s of page-locking, filling and copying, seconds until a process begins
GPU_FLOPS, LOCK, FILL, COPY, BEGIN_S = 45e12, 3e9, 15e9, 40e9, 2.5


def rate(row):
    """Rate until the results are back where they began, if that is known."""
    return row.get("back") or row["median"]


def best(rows):
    return max(rows, key=rate, default=None)


def workers(session):
    """CPU workers that leave the GPU and the system a core each."""
    return max(1, min(session.cores - 2, 64))


def cost(session, workload, n, precision, policies=1):
    """Cost of a row of a workload: `seconds`, and `bytes_` of the host's memory."""
    bytes_ = ARRAYS[workload] * n * n * ELEMENT[precision]
    run = bytes_ / FILL + bytes_ / COPY + FLOPS[workload] * n ** 3 / GPU_FLOPS
    runs = bytes_ / LOCK + (session.options.reps + 1) * run + bytes_ / FILL
    return {"seconds": BEGIN_S + policies * runs, "bytes_": 1.1 * bytes_}


def peer(session, operation, workload, orders, precision, slower=1.3, **options):
    """Rows of cuda_peers: one process for all orders, whose memory is that of the largest."""
    orders = [n for n in orders if n <= MOST_PEER]
    costs = [cost(session, workload, n, precision) for n in orders]
    words = [word for key, value in {"n": ",".join(map(str, orders)), "precision": precision,
                                     "repeats": session.options.reps, **options}.items()
             for word in (f"--{key}", value)]
    if orders:
        session.program("cuda_peers", [operation, *words], tile=options.get("block"),
                        seconds=slower * sum(one["seconds"] for one in costs),
                        bytes_=3 * max(one["bytes_"] for one in costs))


def programs_of(session, *patterns):
    folder = session.options.tests
    return [path for pattern in patterns for path in sorted(folder.glob(pattern) if folder else [])
            if os.access(path, os.X_OK)]


def tests(session):
    """Backends on the GPU, kernels, the library, and 20 s of random programs."""
    quick = session.options.quick
    for path in programs_of(session, "[!r]*"):
        session.check(path.name, [path], 5 if quick else 20)
    for path in programs_of(session, "real.cuda_random*"):
        session.check(path.name, [path], 60, {"DUET_TEST_SECONDS": "1" if quick else "20"},
                      4 if quick else 23)


def memcheck(session):
    """Tests that launch kernels, under compute-sanitizer, which virtual machines may forbid."""
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    places = [os.environ["PATH"], "/usr/local/cuda/bin",
              *(str(pathlib.Path(path).parent / "bin") for path in libraries)]
    tool = shutil.which("compute-sanitizer", path=":".join(places))
    for path in programs_of(session, "workloads.kernels_cuda_gpu", "real.cuda_random*"):
        command = [tool, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", 99,
                   path] if tool else ["sh", "-c", "echo there is no compute-sanitizer; exit 77"]
        session.check(f"memcheck-{path.name}", command, 40, {"DUET_TEST_SECONDS": "5"}, 10,
                      r"(?s)\A(?!.*ERROR SUMMARY: [1-9]).*Device not supported")


def verify(session):
    """Six workloads in both precisions, a process each; five of them with enough of the GPU's
    memory and with little of it."""
    quick = session.options.quick
    edges = ["--n", 512, "--tile", 128] if quick else ["--n", 4096, "--tile", 512]
    memory = ["--gpu-memory", "2MiB,64MiB" if quick else "64MiB,8GiB"]
    usual = ["--precision", "s,d", "--policy", "ws,locality-aware"]
    cases = {workload: [workload, *edges, *memory, *usual]
             for workload in ("cholesky", "lu", "gemm", "lu-pivot", "jacobi2d")}
    cases["cholesky-on-gpu"] = ["cholesky", *edges, *usual, "--param", "potrf=any", "--set-arch"]
    cases["cholesky-columns"] = ["cholesky", *edges, *usual, "--param", "layout=lapack"]
    cases["saxpy"] = ["saxpy", "--n", 1 << 22, "--tile", 1 << 16, "--precision", "s,d"]
    for name, words in cases.items():
        session.check(f"verify-{name}", [*session.options.duet, "run", *words, "--gpus", 1,
                                         "--cpus", 1, "--reps", 2, "--verify", "--quiet"],
                      seconds=4)


def calibrate(session):
    """The machine, as it will be simulated, and what `duet calibrate` measures beside kernels."""
    options = session.options
    path = options.output / "machine.json"
    seconds = 2 if options.quick else max(5, min(45, int(0.4 * session.left())))
    words = ["calibrate", "cholesky", "gemm", "--precision", "d", "--tile",
             64 if options.quick else 1024, "--cpus", 1 if options.quick else workers(session),
             "--gpus", 1, "--json", "--quiet", "--out", path, "--replace", "--budget",
             f"{seconds}s", *session.pin]

    def bandwidths(name, *figures):
        return {"what": name, "unit": "GB/s", "values": [1e-9 * value for value in figures]}

    def measure():
        report = json.loads(session.execute([*options.duet, *words])[0])
        copies = report["copies"]
        name = [f"copy from {copy['source']} to {copy['destination']}" for copy in copies]
        rows = [bandwidths(name[i], copy["bandwidth_Bps"]) for i, copy in enumerate(copies)]
        rows += [{"what": f"{name[i]}, latency", "unit": "us", "values": [1e6 * copy["latency_s"]]}
                 for i, copy in enumerate(copies)]
        rows += [bandwidths(f"{name[pair['first']]} and {name[pair['second']]}, together",
                            pair["first_Bps"] + pair["second_Bps"])
                 for pair in report["together"]]
        rows += [{"what": f"{cost['name']}: {cost['description']}", "unit": "us",
                  "values": [1e6 * cost[key] for key in ("quartile1_s", "median_s", "quartile3_s")]}
                 for cost in report["costs"] if cost["median_s"]]
        return [{"peer": "duet", "verified": None, **row} for row in rows]
    session.attempt("duet calibrate", measure, seconds + 5)


def validate(session):
    """Predicts each case from that calibration, and then measures it."""
    options = session.options
    calibrate(session)
    seconds = max(5, session.left() - 8)
    edges = ["--n", "256,384", "--tile", 64] if options.quick else ["--n", "8192,16384", "--tile",
                                                                   1024]
    cpus = 1 if options.quick else f"1,{workers(session)}"
    words = ["validate", "cholesky", "gemm", *edges, "--precision", "d", "--cpus", cpus, "--gpus",
             1, "--policy", ",".join(options.policies), "--platform", options.output /
             "machine.json", "--rounds", 3, "--reps", 6, "--json", "--quiet", "--keep-disturbed",
             *session.pin, "--budget", f"{min(3600, 0.6 * seconds):.0f}s"]

    def measure():
        found = json.loads(session.execute([*options.duet, *words], some=True)[0])
        session.record["validation"] = {**found, "cut": session.cut}
    if options.plan or ("validation" not in session.record and
                        (options.output / "machine.json").exists()):
        session.attempt("duet validate", measure, min(seconds, 70))


def gemm(session):
    """In core and out of core, with the tiles, windows and blocks that simulations chose."""
    options, n = session.options, session.options.gemm_n
    variants = options.gemm_variants
    for precision in options.precisions:
        usual = {"n": n, "precision": precision, **ON_GPU, "policy": "locality-aware",
                 **cost(session, "gemm", n, precision)}
        peer(session, "gemm", "gemm", [n], precision)
        for memory in None, options.gemm_memory:
            for tile, window, block in variants:
                session.duet("gemm", tile=tile, gpu_window=window, params=[f"block={block}"],
                             gpu_memory=memory, **usual)
        peer(session, "gemm-xt", "gemm", [n], precision, 1.7, block=variants[0][0])
        # the other precision takes only the faster tile
        chosen = best(session.rows(peer="duet")) or {"tile": variants[0][0]}
        variants = [variant for variant in variants if variant[0] == chosen["tile"]]


def factorisation(session, workload, orders):
    """The middle order (of two: the last) chooses tile and policy for the others. It is also run
    with the CPUs, which want small tiles, and out of core. Panels are anywhere."""
    options = session.options
    middle = orders[len(orders) // 2]
    for precision in options.precisions:
        def duet(n, policies=1, **more):
            slab = options.gemm_memory if more.pop("outside", False) else None
            return session.duet(workload, n=n, precision=precision, gpu_memory=slab,
                                params=[f"{PANELS[workload]}=any"], **{**ON_GPU, **more},
                                **cost(session, workload, n, precision, policies))
        tried = [row for tile in options.tiles for row in
                 duet(middle, len(options.policies), tile=tile, policy=",".join(options.policies))]
        chosen = best(tried) or {"tile": options.tiles[0], "policy": options.policies[0]}
        chosen = {key: chosen[key] for key in ("tile", "policy")}
        for n in orders:
            if n != middle:
                duet(n, **chosen)
        peer(session, workload, workload, orders, precision)
        duet(middle, cpus=workers(session), set_arch=None, tile=min(options.tiles), policy="heft")
        duet(middle, outside=True, **chosen)


def cholesky(session):
    factorisation(session, "cholesky", session.options.orders)


def lu(session):
    factorisation(session, "lu", session.options.orders[1:] or session.options.orders)


def overlap(session):
    options = session.options
    n, tile = options.orders[-1], options.tiles[-1]
    for variant in ({}, {"gpu_window": 1}, {"gpu_window": 8}, {"gpu_streams": 4}, {"pin": "none"}):
        session.duet("gemm", n=n, tile=tile, precision="d", policy="locality-aware",
                     gpu_memory=options.overlap_memory, **ON_GPU, **variant,
                     **cost(session, "gemm", n, "d"))


def overhead(session):
    options = session.options
    size = [(name, 50 if options.quick else 20000) for name in ("independent", "chain")]
    for window, streams, untimed in (8, 1, 0), (8, 1, 1), (2, 1, 0), (8, 4, 0):
        for benchmark, count in *size, ("cholesky", 4 if options.quick else 40):
            session.program("overhead_cuda", [benchmark, 1, options.reps, count],
                            {"DUET_GPU_WINDOW": str(window), "DUET_GPU_WINDOW_SHORT": str(window),
                             "DUET_GPU_STREAMS": str(streams), "DUET_GPU_UNTIMED": str(untimed)},
                            2.0, peer="duet", window=window, streams=streams, verified=True,
                            timed=not untimed)


def memory(session):
    """As the peers count: bytes that a kernel in core reads and writes."""
    n, edge = (1 << 16, 256) if session.options.quick else (1 << 28, 16384)
    usual = {"precision": "d", "policy": "locality-aware", **ON_GPU}
    for rounds in 1, 10:
        session.duet("saxpy", 24.0 * n * rounds, 4, 16.0 * n, n=n, tile=n // 32,
                     params=[f"iterations={rounds}"], **usual)
    session.program("cuda_peers", ["saxpy", "--n", n, "--precision", "d", "--repeats",
                                   session.options.reps], seconds=4, bytes_=24.0 * n)
    for pieces in 1, 4:  # one tile: all of it in the GPU's memory, copied before and after
        session.duet("jacobi2d", 160.0 * edge * edge, 5, 48.0 * edge * edge, n=edge,
                     tile=edge // pieces, params=["iterations=10"], **usual)


def cpus(session):
    """The machine's cores, by the scripts that measure those of any machine."""
    options = session.options
    build, folder, quick = options.programs.parent, options.output / "corpus", options.quick
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count < session.cores]
    counts = ",".join(map(str, [*counts, session.cores]))
    scripts = {
        "overhead": (["--workers", counts, "--runs", 1 if quick else 3, "--benchmarks",
                      "independent" if quick else "independent,cholesky,fork_join,stencil",
                      *(["--size", "independent=100"] if quick else [])], 60),
        "factorizations": (["--operations", "cholesky", "--workers", session.cores, "--n", 512 if
                            quick else "4096,16384", "--tiles", 128 if quick else "256,512",
                            "--runs", 1 if quick else 3], 60),
        "corpus": (["record", "--rounds", 1 if quick else 8, "--folder", folder, "--name", "corpus",
                    "--budget", "1s", *(["--cases", "saxpy:65536:16384:1:ws"] if quick else
                                        ["--small"])], 60),
        "contention": (["--measure", "--threads", "1,2" if quick else counts, "--graphs",
                        "independent" if quick else "independent,cholesky", "--repeats", 3,
                        *(["--size", "independent=200"] if quick else [])], 110),
    }
    for name, (words, seconds) in scripts.items():
        session.text(name, [sys.executable, HERE / f"{name}.py", *words, "--build", build],
                     3 if quick else seconds)
    for path in sorted(folder.glob("*")):
        session.logs[f"corpus/{path.name}"] = path.read_bytes()
    shutil.rmtree(folder, ignore_errors=True)
    session.save()


# shares of the time, in seconds of the two calls that docs/gpus.md describes
CHECKS = {tests: 60, memcheck: 40, verify: 30}
FIGURES = {validate: 105, gemm: 138, cholesky: 152, lu: 60, overlap: 42, overhead: 21, memory: 19}
PARTS = {part.__name__: (part, share) for part, share in {**CHECKS, **FIGURES, cpus: 330}.items()}
SETS = {"checks": [part.__name__ for part in CHECKS],
        "figures": [part.__name__ for part in FIGURES]}


def goals(session):
    """Goals, as far as they were measured."""
    found = session.record["goals"] = []

    def goal(text, figure, bound, reached):
        found.append({"goal": text, "figure": figure, "bound": bound, "reached": reached})

    for name, bound in ("median", 0.03), ("p95", 0.08):
        figure = session.record.get("validation", {"summary": {}})["summary"].get(name)
        if figure is not None:
            goal(f"predictions: {name} absolute error, at most", figure, bound, figure <= bound)
    for precision in "d", "s":
        def share(text, ours, theirs, bound):
            ours, theirs = best(ours), best(theirs)
            if ours and theirs:
                figure = rate(ours) / rate(theirs)
                goal(f"{text}, n {ours['n']}, at least", figure, bound, figure >= bound)
        rows = functools.partial(session.rows, precision=precision)
        cublas = rows("gemm", peer="cublas", copies=False)
        inside = [{**row, "back": None} for row in rows("gemm", peer="duet", slab=None)]
        outside = [row for row in rows("gemm", peer="duet") if row["slab"]]
        large = rows("cholesky", peer="duet", slab=None)
        title = f"{precision}gemm"
        share(f"{title} in core until its last kernel: share of cuBLAS", inside, cublas, 0.95)
        share(f"{title} out of core: share of cuBLAS in core", outside, cublas, 0.9)
        share(f"{title} out of core: over cuBLASXt", outside, rows("gemm", peer="cublasxt"), 1.0)
        share(f"cholesky {precision}: share of {title} in core",
              [row for row in large if row["n"] == max(each["n"] for each in large)], cublas, 0.85)


def run(session):
    """Makes the chosen parts; after each row all of it is on the disk."""
    chosen = [name for name in PARTS if name in session.options.only]
    for place, name in enumerate(chosen):
        shares = [PARTS[each][1] for each in chosen[place:]]
        session.begin(name, shares[0] / sum(shares))
        try:
            PARTS[name][0](session)
            goals(session)
        except Exception as error:  # a mistake in one part costs no other
            session.fail(name, repr(error))
    session.save()
