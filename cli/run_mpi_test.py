# SPDX-License-Identifier: Apache-2.0
"""duet run --nodes by processes of mpirun: the first one reports, and what it writes is of all."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

DUET = os.environ["DUET"]
MODULE = pathlib.Path(os.environ["DUET_BUILD_DIR"]) / "modules" / "libduet-mpi.so"
if not MODULE.exists() or not shutil.which("mpirun"):
    print("this build is without MPI, or there is no mpirun here")
    sys.exit(77)
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")

with tempfile.TemporaryDirectory() as folder:
    trace, page = pathlib.Path(folder, "run.json"), pathlib.Path(folder, "run.html")
    result = subprocess.run(
        ["mpirun", "--timeout", "300", "-n", "2", DUET, "run", "cholesky", "--n", "1024", "--tile",
         "256", "--cpus", "1", "--nodes", "2", "--reps", "1", "--verify", "--json", "--html", page,
         "--trace", trace], capture_output=True, text=True, check=True)
    [run] = json.loads(result.stdout)["runs"]
    text = trace.read_text()
    events = json.loads(text)["traceEvents"]
    shown = page.read_text()
    why = json.loads(subprocess.run([DUET, "explain", trace, "--json", "--no-what-if"],
                                    capture_output=True, text=True, check=True).stdout)

assert run["verification"]["passed"] and run["tasks"] == 20, run
assert run["settings"] == "nodes=1x2" and run["nodes"]["count"] == 2, run
kernels = [event for event in events if event.get("cat") == "kernel"]
assert sorted(event["args"]["task"] for event in kernels) == list(range(1, 21))
assert len({event["pid"] for event in kernels}) == 2
messages = [event for event in events if event.get("cat") == "copy"]
assert len(messages) == run["nodes"]["messages"] > 0
assert sum(event["args"]["bytes"] for event in messages) == run["nodes"]["bytes"]
# What comes is read there.
assert {message["name"] for message in messages} == {"n0.host to n1.host", "n1.host to n0.host"}
for message in messages:
    data = message["args"]["handle"]
    node = 1 if message["name"].startswith("n0") else 0
    assert any(event["pid"] == 1 + node and data in [used[0] for used in event["args"]["accesses"]]
               for event in kernels), message
assert "n1.cpu0" in shown and "n1.host" in shown
assert abs(sum(part["seconds"] for part in why["path"]["parts"]) - why["makespan_s"]) < 1e-6

# A validation predicts and measures the same nodes, and knows of messages; what the processes would
# have to agree on is refused.
VALIDATE = ["mpirun", "--timeout", "300", "-n", "2", DUET, "validate", "cholesky", "--emulate",
            "idgraf", "--scale", "0.1", "--n", "3840", "--cpus", "1", "--gpus", "2", "--nodes", "2",
            "--network", "switch:10Gbps,5us"]
[case] = json.loads(subprocess.run([*VALIDATE, "--reps", "2", "--json"], capture_output=True,
                                   text=True, check=True).stdout)["cases"]
assert case["settings"] == "nodes=1x2" and len(case["measured"]["makespans_s"]) == 2, case
assert "message" in [part["reason"] for part in case["explanation"]["parts"]], case
result = subprocess.run([*VALIDATE, "--until", "1%"], capture_output=True, text=True, check=False)
assert result.returncode == 2 and "--until is for one node" in result.stderr, result
