# SPDX-License-Identifier: Apache-2.0
"""What tests of the command share: calls of it, policies to be compiled, waiting for something seen
in another process, and processes of mpirun."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

DUET = os.path.abspath(os.environ.get("DUET") or "".join(sys.argv[1:2]))
ROOT = pathlib.Path(__file__).resolve().parents[1]

# One queue for all workers; what is odd in it is said where it is compiled.
POLICY = """
#include <assert.h>
#include <duet/policy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int pushed, popped;
static int init(void *self, struct duet_view *view)
{
    return INIT;
}
static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                 int by, double now)
{
    for (size_t i = 0; i < count; i++)
        if (KEEPS)
            duet_push_tail(view, duet_view_shared(view), batch[i]);
}
static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct duet_task *task = duet_pop_head(view, duet_view_shared(view), worker);
    POPPED
    return task;
}
const struct duet_policy duet_policy = {.name = "mine", .description = "a queue",
    .source = "this test", .init = init, .push = push, .pop = pop};
"""

# What a shell starts in its background ignores interrupts, and so does what that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def compile_policy(path, keeps="1", init="DUET_OK", popped=""):
    """Makes a shared object: whether a task is kept, what init returns, statements once one is
    popped, or NULL."""
    text = POLICY.replace("KEEPS", keeps).replace("INIT", init).replace("POPPED", popped)
    subprocess.run([os.environ.get("DUET_CC") or "cc", "-std=c11", "-shared", "-fPIC", "-w",
                    f"-I{ROOT}/core/include", "-x", "c", "-", "-o", path],
                   input=text, text=True, check=True)


def at_task(number, statements):
    """For compile_policy: statements when the task with this number is popped, counted from 1 over
    all runs of a process."""
    return f"if (task && __atomic_add_fetch(&popped, 1, __ATOMIC_RELAXED) == {number}) " + (
        f"{{ {statements} }}")


def touch(path):
    """Statements in C that make an empty file."""
    return f'fclose(fopen("{path}", "w"));'


def duet(*words, before=(), status=None, **options):
    """A call, behind the words of a launcher, which has to end with this status if one is given."""
    result = subprocess.run([*map(str, [*before, DUET, *words])], capture_output=True, text=True,
                            check=False, **options)
    assert status in (None, result.returncode), (words, result)
    return result


def mpirun(count, *words, options=(), status=None):
    """A call in so many processes."""
    return duet(*words, before=["mpirun", *options, "-n", count], status=status)


def good(*words, **options):
    """The output of a call that succeeds without a message. Where something runs here, remarks on
    the machine are allowed."""
    result = duet(*words, status=0, **options)
    runs = words[0] in ("run", "calibrate", "validate")
    assert not (told(result.stderr) if runs else result.stderr), (words, result.stderr)
    return result.stdout


def told(errors):
    """The lines of standard error, but for what a busy machine, or one of few cores, has duet say:
    the remarks of the first three kinds once at most."""
    of_machine = ("take turns", "other processes use", "want to run on", "nothing has ended for",
                  "has been running on")
    lines = errors.splitlines()
    for words in of_machine[:3]:
        assert sum(words in line for line in lines) <= 1, errors
    return [line for line in lines if not any(words in line for words in of_machine)]


def refused(result, says, status=2):
    """Nothing was printed but one line that says this, beside what may be said of the machine."""
    lines = told(result.stderr)
    assert result.returncode == status and not result.stdout, (says, result)
    assert len(lines) == 1 and lines[0].startswith("duet: ") and says in lines[0], (says, result)


def refuse_all(command, bad, usual=(), **options):
    """Pairs of arguments, after the usual ones where they begin with a +, and what is said then."""
    for text, says in bad:
        words = ["" if word == "''" else word for word in text.split()]
        words = [*usual, *words[1:]] if words[:1] == ["+"] else words
        refused(duet(*command.split(), *words, **options), says)


def run_tests(tests):
    """Calls the functions test_..., or those that the command line names."""
    named = [word for word in sys.argv if word in tests]
    for name, test in list(tests.items()):
        if name.startswith("test_") and (not named or name in named):
            started = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)


def until(seen):
    """Waits until seen() is true: for how long at most, ctest knows."""
    while not seen():
        time.sleep(0.01)


def interrupted(*words, when=lambda process: True, number=signal.SIGINT, **options):
    """What a call prints and says that a signal ends, once it attends to that and when(process) is
    true. The signal comes twice, as from timeout(1)."""
    process = subprocess.Popen([DUET, *map(str, words)], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **options)

    def ready():
        assert process.poll() is None, process.communicate()
        return attends(process, number) and when(process)
    until(ready)
    process.send_signal(number)
    process.send_signal(number)
    output, messages = process.communicate()
    assert process.returncode == 128 + number, (process.returncode, output, messages)
    return output, messages


def attends(process, number, how="SigCgt"):
    """Whether a process catches the signal, or with how="SigIgn" ignores it."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    mask = re.search(rf"^{how}:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return mask is not None and int(mask.group(1), 16) >> (number - 1) & 1 == 1


def children_of(process):
    """The numbers of the processes that its first thread has started."""
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(child) for child in path.read_text(encoding="ascii").split()]


def has_begun(count):
    """For interrupted(): whether so many others were started, those that have ended among them."""
    seen = set()

    def when(process):
        seen.update(children_of(process))
        return len(seen) >= count
    return when


def has_open(process, path):
    """Whether the process has the file open. What it closes while this looks, it has not."""
    for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(descriptor) == str(path.resolve()):
                return True
    return False


def is_alive(number):
    """Whether the process is there and no zombie waiting to be collected."""
    try:
        text = pathlib.Path(f"/proc/{number}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def busy():
    """Meanwhile somebody computes on all cores."""
    script = "print(flush=True)\nwhile True: pass"
    loops = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
             for _ in os.sched_getaffinity(0)]
    try:
        for loop in loops:
            loop.stdout.readline()
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def need_mpirun():
    """Ends a test as skipped where there is no mpirun; else it starts any number of processes."""
    if not shutil.which("mpirun"):
        print("there is no mpirun here")
        sys.exit(77)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                      OMPI_MCA_rmaps_base_oversubscribe="1")


def need_mpi(refusal):
    """Likewise where a refusal says that this build is without MPI."""
    if "built without MPI" in refusal:
        print("this build is without MPI, and says so")
        sys.exit(77)


def said(errors):
    """What duet has said, without what mpirun says of it."""
    return [line for line in told(errors) if line.startswith("duet: ")]
