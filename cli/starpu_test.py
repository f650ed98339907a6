# SPDX-License-Identifier: Apache-2.0
"""Records of StarPU with its performance models, and machines from its figures of the bus."""

import json
import os
import pathlib
import tempfile

import testing

RECORD = testing.ROOT / "examples" / "graphs" / "cholesky.rec"
FOLDER = pathlib.Path(tempfile.mkdtemp())
# footprints of the record's kernels on tiles of 960, and microseconds on a CPU and on a GPU
KERNELS = {"potrf": ("617e5fe6", 40000, 5000), "trsm": ("ff82dda0", 40000, 6000),
           "syrk": ("ff82dda0", 40000, 1500), "gemm": ("24c84a50", 90000, 3000)}
NO_REGRESSION = "0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\n"


def run(*args, **environment):
    return testing.duet(*args, cwd=FOLDER,
                        env={**os.environ, "HOME": str(FOLDER), **environment})


def simulated(*args, **environment):
    result = run("simulate", RECORD, "--json", "--policy", "dmda", *args, **environment)
    assert result.returncode == 0 and not result.stderr, result
    return json.loads(result.stdout)["runs"][0]


def refused(message, *args, **environment):
    testing.refused(run(*args, **environment), message)


def close(value, wanted):
    assert abs(value - wanted) <= 1e-6 * wanted, (value, wanted)


def write_models(folder, host="box", devices=1):
    codelets = folder / "codelets" / "45"
    codelets.mkdir(parents=True, exist_ok=True)
    for kernel, (footprint, cpu, gpu) in KERNELS.items():
        combinations = [(0, 0, cpu)] + [(1, i, gpu) for i in range(devices)]
        (codelets / f"chol_model_{kernel}.{host}").write_text(
            f"45\n{len(combinations)}\n" + "".join(
                f"1\n{kind}\n{number}\n1\n1\n1\n{NO_REGRESSION}{footprint} 1 1e9 {time} 1 1 1 9\n"
                for kind, number, time in combinations))


def write_bus(folder, host="box", gpus=2, memory=2**30, bandwidths=None, models=("A", "A")):
    bus = folder / "bus"
    bus.mkdir(parents=True, exist_ok=True)
    nodes = range(gpus + 1)
    bandwidths = bandwidths or {}
    (bus / f"{host}.config").write_text(
        f"# Current configuration\n8 # Number of CPUs\n{gpus} # Number of CUDA devices\n"
        "1 # Number of OpenCL devices\n")
    for kind, value in (("bandwidth", 4000), ("latency", 10)):
        (bus / f"{host}.{kind}").write_text("# to 0\tto 1\n" + "".join(
            "\t".join(str(0 if a == b else bandwidths.get((a, b), value) if kind == "bandwidth"
                          else value) for b in nodes) + "\tnan\n" for a in nodes))
    (bus / f"{host}.affinity").write_text(
        "# GPU\tCPU0\n" + "".join(f"{i}\t{4 * i}\t1\n" for i in range(gpus)))
    (bus / f"{host}.platform.xml").write_text(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n<platform><AS>" +
        "".join(f"<host id='CUDA{i}'><prop id='model' value='{models[i % 2]}'/>"
                f"<prop id='memsize' value='{memory}'/></host>" for i in range(gpus)) +
        "</AS></platform>\n")


models = FOLDER / "models"
write_models(models)
write_bus(models)

# Times are those of the models, for each architecture, wherever StarPU would find them.
measured = simulated("--platform", "mirage")
wanted = 4 * 40e-3 + 12 * 40e-3 + 4 * 90e-3
alone = ("--platform", "mirage", "--cpus", "1", "--gpus", "0", "--no-costs")
assert measured["tasks"] == 20, measured
at = f"{models}:box"
close(simulated(*alone, "--starpu-models", at)["makespan_s"]["median"], wanted)
close(simulated(*alone, STARPU_PERF_MODEL_DIR=str(models),
                STARPU_HOSTNAME="box")["makespan_s"]["median"], wanted)
write_models(FOLDER / ".starpu" / "sampling", "other")
close(simulated(*alone, STARPU_HOSTNAME="other")["makespan_s"]["median"], wanted)
one_gpu = simulated("--platform", "mirage", "--cpus", "0", "--gpus", "1", "--starpu-models", at)
assert one_gpu["makespan_s"]["median"] >= (4 * 5 + 6 * 6 + 6 * 1.5 + 4 * 3) * 1e-3, one_gpu

# An older file counts where there is no newer one.
older = models / "codelets" / "44"
older.mkdir()
newest = models / "codelets" / "45" / "chol_model_gemm.box"
(older / newest.name).write_text(newest.read_text().replace("45\n", "44\n", 1).replace(
    NO_REGRESSION, NO_REGRESSION[:-2]).replace(" 90000 ", " 80000 "))
close(simulated(*alone, "--starpu-models", at)["makespan_s"]["median"], wanted)
moved = newest.rename(newest.with_suffix(".kept"))
close(simulated(*alone, "--starpu-models", at)["makespan_s"]["median"], wanted - 4 * 10e-3)
moved.rename(newest)

# A model that is not there: what the record has measured is enough, unless models were named.
assert simulated("--platform", "mirage", STARPU_HOSTNAME="nobody") == measured
refused(f"job 11 (POTRF): no time for footprint 617e5fe6: there is no "
        f"{models}/codelets/45/chol_model_potrf.nobody",
        "simulate", RECORD, "--platform", "mirage", "--starpu-models", f"{models}:nobody")
refused("is no directory", "simulate", RECORD, "--platform", "mirage", "--starpu-models", "nowhere")
broken = models / "codelets" / "45" / "chol_model_gemm.box"
text = broken.read_text()
broken.write_text(text.replace("24c84a50", "24c84a51"))
refused(f"(GEMM): no time for footprint 24c84a50 is in {broken}",
        "simulate", RECORD, "--platform", "mirage", "--starpu-models", at)
broken.write_text(text[:80])
refused(f"{broken}:", "simulate", RECORD, "--platform", "mirage", "--starpu-models", at)
broken.write_text(text)

# A machine from StarPU's figures has its processors, links and reaches.
result = run("platform", "import", "--starpu-models", at, "--out", "box.json")
assert result.returncode == 0 and "8 CPUs, A, A" in result.stdout, result
box = json.loads((FOLDER / "box.json").read_text())
assert box["name"] == "box" and [s["cores"] for s in box["sockets"]] == [4, 4], box
assert [gpu["memory_bytes"] for gpu in box["gpus"]] == [2**30] * 2, box
assert box["links"][0]["to_device"] == {"bandwidth_Bps": 4e9, "latency_s": 1e-5}, box
assert [peer["reach"] for peer in box["peers"]] == ["remote"], box
runs = simulated("--platform", "./box.json", "--starpu-models", at)
assert runs["cpus"] == 6 and runs["gpus"] == 2, runs
refused("is there already", "platform", "import", "--starpu-models", at, "--out", "box.json")
# devices that differ are architectures of their own, whose times are those of the device
write_bus(models, models=("A", "B"), bandwidths={(0, 2): 2000})
assert run("platform", "import", "--starpu-models", at, "--out", "box.json",
           "--replace").returncode == 0
box = json.loads((FOLDER / "box.json").read_text())
assert [arch["name"] for arch in box["architectures"]] == ["cpu", "cuda0", "cuda1"], box
assert box["switches"][0]["to_device_Bps"] == 4e9 and box["links"][0]["to_device"][
    "bandwidth_Bps"] == 2e9, box

# What is missing is said.
write_bus(models, bandwidths={(2, 1): "nan"})
refused("box.bandwidth: no figure between memory nodes 2 and 1",
        "platform", "import", "--starpu-models", at, "--out", "bad.json")
write_bus(models, memory=0)
refused("how much memory cuda0 has is not there",
        "platform", "import", "--starpu-models", at, "--out", "bad.json")
refused("none.config", "platform", "import", "--starpu-models", f"{models}:none",
        "--out", "bad.json")
refused("where to?", "platform", "import", "--starpu-models", at)
assert not (FOLDER / "bad.json").exists()

# A study simulates again what was measured anew, and only that.
study = ["study", RECORD, "--platform", "idgraf", "--starpu-models", at, "--out", "s.db"]
tables = [run(*study).stdout, run(*study).stdout]
KERNELS["gemm"] = ("24c84a50", 900000, 30000)
write_models(models, devices=2)
tables += [run(*study).stdout]
assert tables[0] == tables[1] != tables[2] and "makespan" in tables[2], tables
