# SPDX-License-Identifier: Apache-2.0
"""What brings large libraries with it is opened when it is needed, once, and where it belongs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DUET = pathlib.Path(os.environ.get("DUET") or "build/duet").resolve()
MODULES = DUET.parent / "modules"
BY_SIMGRID = ["--network-engine", "simgrid"]
SIMULATION = "simulate cholesky --platform idgraf --n 3840 --tile 960 --quiet --csv".split()


def opened(*arguments):
    """For each process of a run of the command, the names of the libraries that it opened."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_DEBUG="files", LD_DEBUG_OUTPUT=f"{folder}/process")
        subprocess.run([DUET, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
        return [set(re.findall(r"calling init: \S*/([^/\s]+)", file.read_text(encoding="utf-8")))
                for file in pathlib.Path(folder).iterdir()]


def of_kind(libraries, *kinds):
    return sorted(name for name in libraries if re.match(f"lib({'|'.join(kinds)})", name))


def check_start():
    for libraries in opened("--version"):
        heavy = of_kind(libraries, "simgrid", "ns3", "openblas", "lapack", "duet-")
        assert not heavy, f"duet --version opens {heavy}"


def check_simulations():
    """SimGrid is opened where it is asked for."""
    for engine, expected in ("fluid", 0), ("simgrid", 2):
        processes = opened(*SIMULATION, "--network-engine", engine)
        heavy = [of_kind(libraries, "simgrid", "duet-simgrid") for libraries in processes]
        assert max(map(len, heavy)) == expected, f"{engine} opens {heavy}"


def check_ns3():
    """Where SimGrid comes with ns-3, what is opened in its place is ours, which is small."""
    simgrid = MODULES / "simgrid"
    if not simgrid.exists():
        return
    with tempfile.NamedTemporaryFile() as log:
        subprocess.run([DUET, *SIMULATION, *BY_SIMGRID], stdout=subprocess.DEVNULL, check=True,
                       env=dict(os.environ, LD_DEBUG="files", LD_DEBUG_OUTPUT=log.name))
        for file in pathlib.Path(log.name).parent.glob(f"{pathlib.Path(log.name).name}.*"):
            for path in re.findall(r"calling init: (\S*/libns3\S*)", file.read_text("utf-8")):
                assert path.startswith(str(simgrid)), f"a simulation opens {path}"
            file.unlink()


def check_refusals():
    """A command without its modules, and one with those of another duet, say what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder) / "duet"
        shutil.copy(DUET, alone)
        for contents, expected in (
                (None, "libduet-simgrid.so, is neither beside the program nor in"),
                (b"no library", "cannot open a part of duet: ")):
            if contents is not None:
                (alone.parent / "modules").mkdir()
                (alone.parent / "modules" / "libduet-simgrid.so").write_bytes(contents)
            result = subprocess.run([alone, *SIMULATION, *BY_SIMGRID], capture_output=True,
                                    text=True, check=False)
            assert result.returncode == 2 and not result.stdout, result
            assert expected in result.stderr, result.stderr


if not (MODULES / "libduet-simgrid.so").exists():
    print("skipped: built without SimGrid")
    sys.exit(77)
check_start()
check_simulations()
check_ns3()
check_refusals()
