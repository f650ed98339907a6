# SPDX-License-Identifier: Apache-2.0
"""`duet simulate --nodes`: a Cholesky factorisation on simulated clusters sends what its
distribution needs and no more, whatever the policy, the network and the window; no cluster is
faster than its bounds; the same input gives the same digits."""

import json
import os
import tempfile

from testing import duet, refused

TILE = 960


def simulate(tiles, nodes, *options, network="switch:100Gbps,1us"):
    result = duet("simulate", "cholesky", "--platform", "idgraf", "--n", str(TILE * tiles),
                  "--nodes", nodes, "--network", network, "--json", *options, status=0)
    return json.loads(result.stdout)["runs"]


def check_counts():
    """What is sent depends on the distribution alone (workloads/messages_test.py counts it)."""
    for tiles, rows, cols, least, options in [
            (10, 2, 2, 90, ["--policy", "eager,ws,heft,dmdas"]),
            (12, 2, 3, 187, ["--policy", "ws", "--window", "40"]),
            (12, 1, 4, 166, ["--policy", "locality-aware", "--noise", "--reps", "2"]),
            (16, 8, 8, 1120, ["--policy", "ws", "--cpus", "2", "--gpus", "1"])]:
        for run in simulate(tiles, f"{rows}x{cols}", *options):
            over = run["nodes"]
            assert run["tasks"] == tiles * (tiles + 1) * (tiles + 2) // 6, run
            assert over["count"] == rows * cols, run
            assert over["messages"] == least, (run, least)
            assert over["bytes"] == over["messages"] * TILE * TILE * 8, run
            assert all(value >= run["bounds_s"]["best"]
                       for value in run["makespan_s"]["values"]), run


def check_networks():
    """A slower network takes no less time; each gives the same digits again."""
    for network in ["torus:{},2us", "fat-tree:{},2us", "dragonfly:{},2us",
                    "switch:{},2us,overhead=5us"]:
        slow, again, fast = (simulate(12, "8", "--policy", "heft", "--noise", "--seed", "5",
                                      network=network.format(speed))[0]["makespan_s"]["values"]
                             for speed in ["1Gbps", "1Gbps", "400Gbps"])
        assert slow == again and slow[0] > fast[0], (network, slow, again, fast)


def check_comparison():
    """Comparisons of reports, or traces, of two clusters say how these differ."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for network in ["torus:1Gbps,2us", "switch:9Gbps,2us"]:
            files.append(os.path.join(folder, network[:5]))
            with open(files[-1], "w", encoding="utf-8") as file:
                json.dump({"schema": 1, "runs": simulate(5, "2", "--trace", files[-1] + ".trace",
                                                         network=network)}, file)
        result = duet("compare", *files, status=0)
        assert "idgraf, torus:1Gbps,2us (A) and idgraf, switch:9Gbps,2us (B)" in result.stdout, (
            result)
        result = duet("compare", *[file + ".trace" for file in files], status=0)
        assert all(f"idgraf_x2, {network}, " in result.stdout
                   for network in ["torus:1Gbps,2us", "switch:9Gbps,2us"]), result


def check_refusals():
    for options, why in [(["--nodes", "4"], "network"),
                         (["--nodes", "4", "--network", "switch:1Gbps,1us", "--policy", "cp"],
                          "policy cp"),
                         (["--nodes", "4", "--network", "file:/nowhere.xml"], "/nowhere.xml"),
                         (["--network", "switch:1Gbps,1us"], "--nodes"),
                         (["--nodes", "4", "--network", "fat-tree:1Gbps,1us,a"], "no shape"),
                         (["--nodes", "200000", "--network", "switch:1Gbps,1us"], "200000")]:
        refused(duet("simulate", "cholesky", "--platform", "idgraf", "--n", "4800", *options), why)
    policies = {run["policy"] for run in simulate(5, "4", "--policy", "all")}
    assert "dmdas" in policies and not policies & {"auto", "cp", "static"}, policies


def main():
    check_counts()
    check_networks()
    check_comparison()
    check_refusals()


if __name__ == "__main__":
    main()
