# SPDX-License-Identifier: Apache-2.0
"""`duet study` started by mpirun: what is in the file is that of one process, whoever dies."""

import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import types

import testing
from testing import DUET, duet, mpirun, said

testing.need_mpirun()
os.chdir(tempfile.mkdtemp())
SMALL = ["study", "cholesky", "--platform", "idgraf", "--n", "1920,3840", "--tile", "480,960",
         "--gpus", "1..3", "--policy", "ws,heft"]
# with a policy whose simulations wait for the file "go"
HELD = ["study", "cholesky", "--platform", "idgraf", "--n", "3840", "--tile", "320,480", "--gpus",
        "1..4", "--cpus", "1..6", "--policy", "./held.so"]
SAME = "command, platform_hash, inputs_hash, makespan_s, error"


def rows(path, what=SAME, order="command"):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT {what} FROM runs ORDER BY {order}").fetchall()
    except sqlite3.OperationalError:  # it has no tables yet
        return []
    finally:
        connection.close()


# What one process says, and whether this build has MPI: if not, that is said, once.
alone = duet(*SMALL, "--out", "alone.db", status=0)
os.environ.update(OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="1")
silent = duet(*SMALL, "--out", "none.db", status=0)
assert not silent.stdout + silent.stderr, silent
os.environ["OMPI_COMM_WORLD_RANK"] = "0"
none = duet(*SMALL, "--out", "none.db", status=2)
assert len(said(none.stderr)) == 1 and not none.stdout, none
assert "this is one of 4 ranks" in none.stderr and not os.path.exists("none.db"), none
del os.environ["OMPI_COMM_WORLD_SIZE"], os.environ["OMPI_COMM_WORLD_RANK"]
testing.need_mpi(none.stderr)

# The same rows and the same table, each once, with any number of ranks; also of a shard.
for count in (2, 5, 16):
    result = mpirun(count, *SMALL, "--out", f"{count}.db", status=0)
    assert result.stdout == alone.stdout, result
    assert not said(result.stderr) and rows(f"{count}.db") == rows("alone.db"), result
    assert not os.path.exists(f"{count}.db-wal")
shown = mpirun(2, "study", "--show", "--out", "2.db", status=0)
assert shown.stdout == alone.stdout, shown
mpirun(2, *SMALL, "--shard", "1/2", "--jobs", "2", "--out", "half.db", status=0)
duet(*SMALL, "--shard", "2/2", "--out", "other.db", status=0)
assert len(rows("half.db")) == 12 and sorted(rows("half.db") + rows("other.db")) == rows("alone.db")

# What is wrong is said by one rank, whatever mpirun makes of the status.
for options, says, words in (
        ([], "no platform is named nowhere", ["study", "cholesky", "--platform", "nowhere"]),
        (["--enable-recovery"], "--tile takes a whole", [*SMALL, "--tile", "x"]),
        (["--enable-recovery"], "cannot open nowhere/a.db: No such",
         [*SMALL, "--out", "nowhere/a.db"]),
        ([], "there is no none.db", ["study", "--show", "--out", "none.db"])):
    result = mpirun(3, *words, options=options)
    assert options or result.returncode == 2, result
    assert len(said(result.stderr)) == 1 and says in result.stderr and not result.stdout, result
full = subprocess.run(["mpirun", "--mca", "btl", "self,tcp", "-n", "2", "sh", "-c",
                       f"ulimit -f 80; exec {DUET} {' '.join(SMALL)} --out full.db"],
                      capture_output=True, text=True, check=False)
assert full.returncode == 1 and len(said(full.stderr)) == 1 and "disk I/O" in full.stderr, full


class Ranks:
    """A study under way: of its three ranks, and of their workers, which are stopped."""

    def __init__(self, path, *options):
        os.unlink("go")
        self.mpirun = subprocess.Popen(["mpirun", *options, "-n", "3", DUET, *HELD, "--out", path],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ranks, self.workers = {}, {}
        testing.until(self.all_stopped)
        pathlib.Path("go").touch()

    def all_stopped(self):
        assert self.mpirun.poll() is None, self.mpirun.communicate()
        for child in testing.children_of(self.mpirun):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                text = pathlib.Path(f"/proc/{child}/environ").read_bytes()
                number = re.search(rb"OMPI_COMM_WORLD_RANK=(\d)", text)
                if number and int(number[1]) not in self.workers:
                    self.ranks[int(number[1])] = child
                    self.stop_worker(int(number[1]))
        return len(self.workers) == 3

    def stop_worker(self, rank):
        own = types.SimpleNamespace(pid=self.ranks[rank])
        for child in testing.children_of(own):
            process = types.SimpleNamespace(pid=child)
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                # neither is so while MPI's process is the child
                if (testing.attends(process, signal.SIGINT, "SigIgn") if rank else
                        testing.attends(own, signal.SIGINT, "SigBlk")):
                    os.kill(child, signal.SIGSTOP)
                    self.workers[rank] = child

    def end(self):
        out, err = self.mpirun.communicate()
        return out, said(err)


# A simulation that dies on another rank, and a rank that dies, cost nothing where mpirun goes on.
testing.compile_policy("held.so", popped='while (access("go", F_OK)) usleep(1000);')
pathlib.Path("go").touch()
assert duet(*HELD, "--out", "long.db").returncode == 0
whole = rows("long.db")
study = Ranks("recovered.db", "--enable-recovery")
os.kill(study.workers[2], signal.SIGKILL)  # in its place there is another, which does the rest
os.kill(study.workers[0], signal.SIGCONT)
testing.until(lambda: len(rows("recovered.db")) == len(whole) - 1)  # rank 1 is at the last one
os.kill(study.ranks[1], signal.SIGKILL)
out, complaints = study.end()
assert out and rows("recovered.db") == whole, out
assert re.search("^duet: lost with other ranks, and made again: [12] runs$", "\n".join(complaints))

# Where mpirun does not, or is interrupted: what is finished is there, and the same command goes on.
for index, ending in enumerate((lambda: os.kill(study.ranks[1], signal.SIGKILL),
                                lambda: study.mpirun.send_signal(signal.SIGINT))):
    path = f"ended-{index}.db"
    study = Ranks(path)
    os.kill(study.workers[0], signal.SIGCONT)
    testing.until(lambda: rows(path))
    ending()
    study.end()
    before = rows(path, "id, wall_s", "id")
    assert study.mpirun.returncode and before, study.mpirun
    mpirun(4, *HELD, "--out", path, status=0)
    assert rows(path) == whole and rows(path, "id, wall_s", "id")[:len(before)] == before
