# SPDX-License-Identifier: Apache-2.0
"""The fake CUDA does what its environment says, in the command that is linked with it."""

import os
import pathlib
import subprocess
import tempfile
import unittest

COMMAND = [os.environ["DUET_FAKE_CUDA"],
           *"run gemm --n 256 --tile 64 --cpus 1 --set-arch --policy eager --reps 1".split(),
           "--warmup", "0", "--verify", "--quiet"]
INVALID_VALUE, OUT_OF_MEMORY, ILLEGAL_ADDRESS = 1, 2, 700


def run(*arguments, **fake):
    """The finished process, and what the fake reports at its end."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("FAKE_CUDA_")}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        environment["FAKE_CUDA_REPORT"] = str(report)
        environment.update({f"FAKE_CUDA_{name}": str(value) for name, value in fake.items()})
        process = subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True,
                                 text=True, timeout=600, check=False)
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return process, {line.split()[0]: int(line.split()[1]) for line in lines}


class Environment(unittest.TestCase):
    """One variable each."""

    def finishes(self, process, report):
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn("passed in", process.stdout)
        self.assertEqual((report["leaks"], report["violations"]), (0, 0))

    def fails(self, text, **fake):
        process, report = run("--gpus", "2", **fake)
        self.assertEqual(process.returncode, 1, process.stdout)
        self.assertIn(text, process.stderr)
        self.assertEqual((report["leaks"], report["violations"]), (0, 0))

    def test_devices(self):
        process, report = run("--gpus", "3", DEVICES=3)
        self.finishes(process, report)
        self.assertEqual(report["cudaMalloc"], 3)
        self.assertGreater(report["kernels"], 0)
        process, report = run("--gpus", "1")
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(report["cudaMalloc"], 0)

    def test_memory(self):
        self.finishes(*run("--gpus", "2", DEVICES=2, MEMORY=1 << 20, DELAY=100))

    def test_registered(self):
        process, report = run("--gpus", "2", DEVICES=2, REGISTERED=4096)
        self.finishes(process, report)
        self.assertEqual(report["cudaHostUnregister"], 0)

    def test_peers(self):
        for peers in (0, 1):
            process, report = run("--gpus", "2", DEVICES=2, PEERS=peers)
            self.finishes(process, report)
            self.assertEqual(report["cudaDeviceEnablePeerAccess"], 2 * peers)

    def test_fail(self):
        self.fails("cudaMalloc: out of memory", DEVICES=2, FAIL=f"cudaMalloc@2={OUT_OF_MEMORY}")
        self.fails("cudaMemcpyAsync: invalid argument", DEVICES=2,
                   FAIL=f"cudaMemcpyAsync@3={INVALID_VALUE},cudaMemcpyAsync@5={INVALID_VALUE}")

    def test_break(self):
        self.fails("illegal memory access", DEVICES=2,
                   BREAK=f"0@20={ILLEGAL_ADDRESS},1@20={ILLEGAL_ADDRESS}")

    def test_misspelt(self):
        for name, value in (("DEVICES", "two"), ("DEVICES", "99"), ("FAIL", "cudaMalloc=2"),
                            ("FAIL", "cudaMaloc@1=2"), ("BREAK", "7@1=700")):
            process, _ = run("--gpus", "1", **{"DEVICES": "1", name: value})
            self.assertLess(process.returncode, 0, f"{name}={value}")
            self.assertIn("fake CUDA", process.stderr)


if __name__ == "__main__":
    unittest.main()
