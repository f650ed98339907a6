# SPDX-License-Identifier: Apache-2.0
"""What the papers of StarPU (CCPE 2011) and UnMP (HeteroPar 2012) say of policies, simulated: the
last tables of docs/reproduction.md, which reproduction.py writes."""

import functools
import itertools
import statistics

from simulated import (FULL, LOADED, ROOT, bound, differs, published, rate, simulate, table,
                       verdict)

TEST_BED = str(ROOT / "validate" / "fx5800.json")
THREE_KINDS = str(ROOT / "validate" / "three-kinds.json")
NO_PRIORITIES, PRIORITIES = "heft-tm", "heft-tm:priorities=1"
MODELS = ("eager", NO_PRIORITIES, PRIORITIES, "dmda", "dmdas")
PERTURBATIONS = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SMALL, LARGE = 1920, 14400  # products on the test bed


def on_test_bed(workload, n, *options, policies, reps=10):
    return simulate(workload, n, 960, "--cpus", 3, "--gpus", 1, *options, precision="s",
                    policies=policies, reps=reps, platform=TEST_BED)


# ---------------------------------------------------------------------------------------------
# StarPU

@functools.cache
def gain(workload):
    """Percent by which priorities make it faster: published, simulated; and the rates."""
    said = [published(workload, "s", 24000, policy=f"heft-tm {which} priorities")["value"]
            for which in ("without", "with")]
    runs = on_test_bed(workload, 24000, "--noise", policies=(NO_PRIORITIES, PRIORITIES))
    made = [rate(runs[NO_PRIORITIES]), rate(runs[PRIORITIES])]
    return differs(*said), differs(*made), said, made


def priorities_table():
    rows = []
    for workload in ("cholesky", "lu"):
        gain_said, gain_made, said, made = gain(workload)
        rows += [[workload, which, f"{a:.0f}", f"{b:.0f}", f"{differs(a, b):+.0f} %"]
                 for which, a, b in zip(("without", "with"), said, made)]
        rows.append([workload, "gain", f"{gain_said:+.1f} %", f"{gain_made:+.1f} %", ""])
    return table(["single precision, N = 24000", "priorities", "published, GFlop/s",
                  "simulated, GFlop/s", "differs"], rows)


@functools.cache
def products(n):
    return on_test_bed("gemm", n, policies=("eager", NO_PRIORITIES), reps=1)


def greedy_table():
    rows = []
    for n in (SMALL, 2880, 4800, 5760, 7680, LARGE):
        runs = products(n)
        rows.append([n, (n // 960) ** 2, f"{rate(runs['eager']):.0f}",
                     f"{rate(runs[NO_PRIORITIES]):.0f}", f"{bound(runs['eager']):.0f}"])
    return table(["GEMM s, N", "tiles of C", "eager", "heft-tm", "area bound"], rows)


@functools.cache
def perturbed(most):
    options = ("--perturbation", most) if most else ()
    return on_test_bed("cholesky", 24000, *options, policies=MODELS)


def perturbation_table():
    rows = [[most, f"{(0.1e6 ** most):.1f}", *(f"{rate(perturbed(most)[p]):.0f}" for p in MODELS)]
            for most in PERTURBATIONS]
    return table(["H", "0.1 s is off by at most a factor of", *MODELS], rows)


def gain_checks():
    (said, made, *_), (said_lu, made_lu, *_) = gain("cholesky"), gain("lu")
    yield [f"CCPE11: priorities make heft-tm faster, Cholesky by {said:.1f} %, LU by "
           f"{said_lu:.1f} %", f"{made:.1f} and {made_lu:.1f} %", verdict(min(made, made_lu) > 0)]
    yield ["CCPE11: Cholesky gains more than LU", f"{made:.1f} and {made_lu:.1f} %",
           verdict(made > made_lu)]


def greedy_check():
    share = [rate(products(n)["eager"]) / bound(products(n)["eager"]) for n in (SMALL, LARGE)]
    return ["CCPE11: greedy is out of balance on small products (about 50 of 225 GFlop/s)",
            f"{100 * share[0]:.0f} % of the area bound at N = {SMALL}, {100 * share[1]:.0f} % at "
            f"{LARGE}", verdict(share[0] < 0.5 < 0.9 < share[1])]


def spread_check():
    runs = on_test_bed("cholesky", 24000, "--noise", policies=("eager", "w-rand", NO_PRIORITIES),
                       reps=30)
    off = {policy: 100 * statistics.stdev(run["makespan_s"]["values"])
           / statistics.mean(run["makespan_s"]["values"]) for policy, run in runs.items()}
    return ["CCPE11: makespans under w-rand vary",
            ", ".join(f"{policy} {value:.1f} %" for policy, value in off.items())
            + " (deviation, 30 seeds)", verdict(off["w-rand"] > 1.5 * off[NO_PRIORITIES])]


def robust_check():
    wrong = on_test_bed("cholesky", 24000, "--model-error", 0.05, policies=(NO_PRIORITIES,))
    change = differs(rate(perturbed(0)[NO_PRIORITIES]), rate(wrong[NO_PRIORITIES]))
    return ["CCPE11: models that are wrong by 5 % cost heft-tm nothing", f"{change:+.1f} %",
            verdict(abs(change) < 1)]


def ahead_checks():
    for policy in (NO_PRIORITIES, PRIORITIES):
        ahead = list(itertools.takewhile(
            lambda most, name=policy: rate(perturbed(most)[name]) > rate(perturbed(most)["eager"]),
            PERTURBATIONS))
        yield [f"CCPE11, figure 2: {policy} stays ahead of greedy though predictions are wrong",
               f"up to H = {ahead[-1]}, a factor of {0.1e6 ** ahead[-1]:.1f} for 0.1 s" if ahead
               else "behind it even where they are right", verdict(ahead and ahead[-1] >= 0.1)]


def starpu_check():
    said = published("cholesky", "s", 38400, policy="dmdas")["value"]
    run = simulate("cholesky", 38400, 960, *FULL, LOADED, "--param", "potrf=any", precision="s",
                   policies=("dmdas",))["dmdas"]
    change = differs(said, rate(run))
    return [f"StarPU's own simulation: {said / 1e3:.2f} TFlop/s under dmdas, Cholesky s, N = 38400 "
            "in tiles of 960 on Idgraf, potrf anywhere",
            f"{rate(run) / 1e3:.2f} TFlop/s, {change:+.1f} %", verdict(abs(change) <= 10)]


# ---------------------------------------------------------------------------------------------
# UnMP

LISTS, BODIES = ("sort", 1 << 21, 1 << 13), ("nbody", 1 << 16, 1 << 10)
UNEVEN = {"lists of uniform lengths": (*LISTS, "--param", "sizes=uniform"),
          "a tenth of the lists eleven times as long": (*LISTS, "--param", "sizes=bimodal"),
          "n-body, uniform": (*BODIES, "--param", "sizes=uniform"),
          "n-body, a tenth of the subsets eleven times as large": (*BODIES, "--param",
                                                                   "sizes=bimodal")}
LEARNED = ("--learn", "--window", 64)
CLEAR = 0.98  # of another makespan: shorter than that is better, whatever the noise


@functools.cache
def uneven(name):
    """Median makespans by policy, and the area bound."""
    runs = simulate(*UNEVEN[name], LOADED, "--noise", reps=10, platform=THREE_KINDS,
                    policies=("eager", "ws", "random", "w-rand", "heft", "fcrm"))
    learned = simulate(*UNEVEN[name], LOADED, "--noise", *LEARNED, reps=31, platform=THREE_KINDS,
                       policies=("fcrm",))
    times = {policy: run["makespan_s"]["median"] for policy, run in runs.items()}
    return times | {"fcrm, learning": learned["fcrm"]["makespan_s"]["median"],
                    "area bound": runs["ws"]["bounds_s"]["area"]}


def uneven_table():
    rows = [[name, *(f"{seconds:.2f}" for seconds in uneven(name).values())] for name in UNEVEN]
    return table(["seconds", *uneven(next(iter(UNEVEN)))], rows)


def uneven_checks():
    fcrm = ("fcrm, learning", "fcrm")
    for name in UNEVEN:
        times = uneven(name)
        text = ", ".join(f"{policy} {times[policy]:.2f}" for policy in
                         ("fcrm", "fcrm, learning", "eager", "ws", "w-rand")) + " s"
        best = min(times["eager"], times["ws"])
        yield [f"HeteroPar12: forecasts suit uneven tasks, a central queue and work stealing do "
               f"not ({name})", text, verdict(times["fcrm"] < CLEAR * best)]
        yield ["HeteroPar12: also when they are learned during the run (the same)",
               f"{differs(best, times['fcrm, learning']):+.1f} %",
               verdict(times["fcrm, learning"] < CLEAR * best)]
        yield ["HeteroPar12: weighted random is behind fcrm, learning or not (the same)",
               " and ".join(f"{differs(times[name], times['w-rand']):+.1f} %" for name in fcrm),
               verdict(CLEAR * times["w-rand"] > max(times[name] for name in fcrm))]


def claims_table():
    rows = [*gain_checks(), greedy_check(), spread_check(), robust_check(), *ahead_checks(),
            starpu_check(), *uneven_checks()]
    return table(["published", "simulated", "holds"], rows)


def blocks():
    return {"claims": claims_table(), "priorities-gain": priorities_table(),
            "greedy": greedy_table(), "perturbation": perturbation_table(),
            "uneven": uneven_table()}
