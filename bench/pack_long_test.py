# SPDX-License-Identifier: Apache-2.0
"""Packs this build and runs the folder from elsewhere, with nothing of the environment: without a
GPU it says so, quickly; with the fake one in place of CUDA it checks, verifies and measures."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from repository import BUILD, ROOT, SKIPPED, skip

FAKES = {"bin/duet": "duet_fake_cuda", "bench/cuda_peers": "cuda_peers_fake",
         "bench/overhead_cuda": "overhead_cuda_fake"}
SYSTEM = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|resolv|util))\.so")
CUDA = re.compile(r"lib(cu|nv)")


def execute(*command, cwd=None, **variables):
    return subprocess.run(["env", "-i", "PATH=/usr/bin:/bin",
                           *(f"{key}={value}" for key, value in variables.items()),
                           *map(str, command)],
                          capture_output=True, text=True, timeout=1000, check=False, cwd=cwd)


def pack(output, *options):
    return subprocess.run([sys.executable, ROOT / "bench" / "pack", "--build", BUILD, "--output",
                           output, *options], capture_output=True, text=True, timeout=1000,
                          check=False)


def check_folder(folder):
    for name in ("run", "bin/duet", "duet", "bin/modules/libduet-blas.so", "bench/gpu.py",
                 "bin/modules/libduet-simgrid.so", "bench/overhead_duet", "lib/libduet.so.0"):
        assert (folder / name).exists(), name
    # what is not of the C library, or CUDA's, is found in the folder
    programs = [path for place in ("bin", "bin/modules", "tests", "bench", "lib")
                for path in (folder / place).glob("*") if path.is_file() and path.suffix != ".py"]
    for path in programs:
        output = execute("ldd", path, LD_LIBRARY_PATH=folder / "lib").stdout
        for line in output.splitlines():
            words = line.split()
            if "=>" not in words or SYSTEM.match(words[0]) or CUDA.match(words[0]):
                continue
            assert pathlib.Path(words[2]).parent == folder / "lib", (path, line)
    # platforms are those of the folder
    platforms = folder / "share/duet/platforms"
    text = (platforms / "mirage.json").read_text(encoding="utf-8")
    (platforms / "only-here.json").write_text(text.replace('"mirage"', '"only-here"'),
                                              encoding="utf-8")
    result = execute(folder / "bin/duet", "list", "platforms", cwd="/",
                     LD_LIBRARY_PATH=folder / "lib")
    assert "only-here" in result.stdout, result


def refused(result, text):
    assert result.returncode == 2 and text in result.stderr, result
    assert len(result.stderr.splitlines()) == 1, result.stderr


def check_builds(place):
    """Builds that are of no use where there is a GPU, and what is there stays."""
    build = place / "build"
    build.mkdir()
    output = place / "kept"
    output.mkdir()
    (output / "run").write_text("made by bench/pack", encoding="utf-8")
    refused(pack(output, "--build", build), "has no command duet")
    for cuda, blas, simgrid, text in (
            (None, {}, "3", "this build is without CUDA"),
            ({"toolkit": "13"}, None, "3", "this build is without OpenBLAS"),
            ({"toolkit": "13"}, {"version": "1"}, None, "this build is without SimGrid"),
            ({"toolkit": "13"}, {"version": "1"}, "3", "bench/overhead_cuda"),
            ("\"", {}, "3", "says nothing of its build")):
        what = json.dumps({"build": {"cuda": cuda, "blas": blas, "simgrid": simgrid}}).replace(
            "\\", "")
        (build / "duet").write_text(f"#!/bin/sh\necho '{what}'\n", encoding="utf-8")
        (build / "duet").chmod(0o755)
        refused(pack(output, "--build", build), text)
    assert (output / "run").exists()


def check_refusals(folder):
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "file").touch()
    refused(pack(folder.parent / "other"), "not made by pack")
    assert (folder.parent / "other" / "file").exists()
    for arguments, text in ((["--budget", "soon"], "soon"), (["--what"], "--what"),
                            (["--only", "tests,foo"], "unknown 'foo': known are checks, figures,")):
        result = execute(folder / "run", *arguments, cwd=folder.parent)
        assert result.returncode == 2 and "usage" in result.stderr, result
        assert text in result.stderr, (text, result.stderr)
    assert not (folder.parent / "results").exists()


def check_without_gpu(folder):
    result = execute(folder / "run", "--quick", "--budget", 60, "--only", "verify,memory",
                     cwd=folder.parent)
    if result.returncode != 0:  # there is no GPU
        assert result.returncode == SKIPPED, result
        assert "gpu: skipped: " in result.stderr, result


def check_with_fake(folder):
    """Checks, a part that measures, and the scripts of the cores, from the folder alone."""
    for place, name in FAKES.items():
        shutil.copy(BUILD / "tests" / name, folder / place)
    for path in (folder / "tests").iterdir():
        path.unlink()
    for name, status in ("good", 0), ("bad", 3), ("other", SKIPPED):
        script = folder / "tests" / name
        script.write_text(f"#!/bin/sh\necho {name} is over\nexit {status}\n", encoding="utf-8")
        script.chmod(0o755)
    result = execute("sh", folder / "run", "--quick", "--budget", 9000, "--output", "fake",
                     "--only", "checks,memory,cpus", cwd=folder.parent, FAKE_CUDA_DEVICES=1)
    assert result.returncode == 1, result.stdout
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped",
                          result.stdout.splitlines()[-1])
    # good and eight verifications; bad; other (nothing here launches kernels under the tool)
    assert counts and counts.groups() == ("9", "1", "1"), result.stdout
    assert "bad: failed (status 3): bad is over" in result.stdout, result.stdout
    output = folder.parent / "fake"
    text = (output / "results.md").read_text(encoding="utf-8")
    assert "\n## Checks" in text and "bad is over" in text and "\n## SAXPY" in text, text
    record = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert {row["part"] for row in record["rows"]} == {"memory"}, record
    # beside other work the scripts of the cores may take longer than they are given
    late = {one["what"] for one in record["failures"]
            if one["part"] == "cpus" and one["why"].startswith("it hangs: not finished in ")}
    assert len(late) == len(record["failures"]), record
    assert {*record["texts"]["cpus"], *late} == {"overhead", "factorizations", "corpus",
                                                 "contention"}, record
    with tarfile.open(output / "logs.tgz") as tar:
        assert "corpus" in late or "corpus/corpus.jsonl.gz" in tar.getnames(), tar.getnames()
    assert len(list(output.iterdir())) == 3, list(output.iterdir())


def check_without_library(folder):
    """CUDA's libraries are nowhere: it is said at once, and nothing else."""
    run = folder / "run"
    run.write_text(run.read_text(encoding="utf-8").replace("libcublas.so.", "libnone.so."),
                   encoding="utf-8")
    result = execute("sh", run, "--output", "less", cwd=folder.parent, FAKE_CUDA_DEVICES=1)
    assert result.returncode == 2 and "libnone.so." in result.stderr, result
    assert not (folder.parent / "less").exists()


if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
    skip("builds with sanitizers are not packed")
if not all((BUILD / "tests" / name).exists() for name in FAKES.values()) or not (
        BUILD / "bench" / "cuda_peers").exists():
    skip("built where CUDA and BLAS are")
with tempfile.TemporaryDirectory() as place:
    packed = pathlib.Path(place).resolve() / "duet-gpu"
    done = pack(packed)
    assert done.returncode == 0 and "MiB" in done.stdout, done
    check_folder(packed)
    check_builds(pathlib.Path(place))
    check_refusals(packed)
    check_without_gpu(packed)
    check_with_fake(packed)
    check_without_library(packed)
    again = pack(packed)
    assert again.returncode == 0, again
