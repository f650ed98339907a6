# SPDX-License-Identifier: Apache-2.0
"""The recorded graph of an OpenMP program is the one that its text means.

Each program is stated again here, by the functions of Text, which follow OpenMP's rules pair by
pair: the order by creation, depend clauses, taskwait, taskgroup and barriers. All such pairs among
the pieces of explicit tasks and their creators are compared, with one and with eight threads, for
each compiler there is. They do not depend on the thread that takes a `single`, nor on a compiler
that leaves out a barrier at the end of a region.
"""

import collections
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import repository

sys.path.append(str(repository.ROOT / "cli"))
from testing import children_of, until

DUET = os.environ["DUET"]
ROOT = repository.ROOT
EXAMPLE = ROOT / "examples" / "openmp" / "tasks.c"
LOOPS = ROOT / "openmp" / "testing_loops.c"
CONSTRUCTS = ROOT / "openmp" / "testing_constructs.c"
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]


class Task:
    def __init__(self, kernel):
        self.kernel = kernel
        self.at = None  # its last piece so far
        self.deps = {}
        self.children = []
        self.waited = False


class Text:
    """Pieces in the order of one thread that runs each task where it is created."""

    def __init__(self):
        self.kernels, self.after, self.explicit = [], [], []
        self.exclusive = set()
        self.current = Task("serial")
        self.tasks = []

    def piece(self, task, after):
        self.kernels.append(task.kernel)
        self.explicit.append(not task.kernel.startswith(("serial", "parallel", "barrier")))
        self.after.append({one for one in after if one is not None})
        task.at = len(self.kernels) - 1

    def conflicts(self, deps):
        """Earlier siblings that depend clauses order before one with `deps`."""
        for sibling in self.current.children:
            for address, kind in deps.items():
                other = sibling.deps.get(address)
                if other and not (other == kind and kind in ("in", "mutex")):
                    yield sibling

    def task(self, kernel, body=None, undeferred=False, **deps):
        me, child = self.current, Task(kernel)
        deps = {address: kind for kind, names in deps.items() for address in names}
        self.piece(child, {me.at} | {one.at for one in self.conflicts(deps)})
        for sibling in me.children:
            if any(kind == "mutex" == sibling.deps.get(address) for address, kind in deps.items()):
                self.exclusive.add((sibling.at, child.at))
        child.deps, child.waited = deps, undeferred
        me.children.append(child)
        self.tasks.append(child)
        if body:
            self.current = child
            body()
            self.current = me
        self.piece(me, {me.at, child.at} if undeferred else {me.at})

    def wait(self, tasks):
        tasks = [task for task in tasks if not task.waited]
        if tasks:
            self.piece(self.current, {self.current.at} | {task.at for task in tasks})
        for task in tasks:
            task.waited = True

    def taskwait(self, **deps):
        if deps:
            deps = {address: kind for kind, names in deps.items() for address in names}
            self.piece(self.current,
                       {self.current.at} | {one.at for one in self.conflicts(deps)})
        else:
            self.wait(self.current.children)

    @contextlib.contextmanager
    def taskgroup(self):
        first = len(self.tasks)
        yield
        self.wait(self.tasks[first:])

    def parallel(self, *team):
        """A team: for each thread its actions between barriers."""
        me, first = self.current, len(self.tasks)
        threads = [Task("parallel") for _ in team]
        start = me.at
        for phase in range(len(team[0])):
            if phase:
                barrier = Task("barrier")
                self.piece(barrier, {one.at for one in threads + self.tasks[first:]})
                start = barrier.at
            for thread, phases in zip(threads, team):
                self.current = thread
                self.piece(thread, {start})
                phases[phase]()
        self.piece(me, {one.at for one in threads + self.tasks[first:]})
        for task in self.tasks[first:]:
            task.waited = True
        self.current = me


def before(after):
    """For each piece the set of all pieces before it, as bits."""
    sets = []
    for own in after:
        bits = 0
        for one in own:
            bits |= sets[one] | 1 << one
        sets.append(bits)
    return sets


def essence(kernels, after, explicit, exclusive):
    """(kernel, pieces before) of explicit pieces and the pieces before these, renumbered."""
    sets, kept = before(after), 0
    for piece, is_explicit in enumerate(explicit):
        if is_explicit:
            kept |= sets[piece] | 1 << piece
    for piece, kernel in enumerate(kernels):
        if kernel == "barrier":
            kept &= ~(1 << piece)
    numbers = [piece for piece in range(len(kernels)) if kept >> piece & 1]
    new = {piece: number for number, piece in enumerate(numbers)}
    relation = [{new[one] for one in numbers if sets[piece] >> one & 1} for piece in numbers]
    pairs = {(new[a], new[b]) for a, b in exclusive}
    return [kernels[piece] for piece in numbers], relation, pairs


def read_graph(path):
    """Kernels, direct predecessors, explicit ones, and pairs that exclude each other, of a file."""
    graph = json.loads(path.read_text(encoding="utf-8"))
    assert graph["format"] == "duet-graph" and graph["schema"] == 1, graph
    names, tasks = graph["kernels"], graph["tasks"]
    assert len(set(names)) == len(names), names
    kernels, after, explicit, exclusive, data = [], [], [], set(), {}
    for number, task in enumerate(tasks):
        own = set(task.get("after", ()))
        assert all(one < number for one in own), task
        for one, mode in task.get("accesses", ()):
            epochs = data.setdefault(one, [("", [])])
            kind = mode if mode in ("r", "commute") else number
            if epochs[-1][0] != kind:
                epochs.append((kind, []))
            own |= set(epochs[-2][1])
            if mode == "commute":
                exclusive |= {(other, number) for other in epochs[-1][1]}
            epochs[-1][1].append(number)
        name = names[task["kernel"]]
        name = name.partition(":")[0] if name.startswith("parallel:") else name
        kernels.append(name)
        explicit.append(name not in ("parallel", "barrier", "serial"))
        if explicit[-1]:
            assert name.startswith(("tasks.c:", "testing_constructs.c:")) and len(name) < 32, name
        after.append(own)
    seconds = [task["seconds"][0] for task in tasks]
    assert min(seconds) >= 0 and graph["makespan_s"] > 0
    return essence(kernels, after, explicit, exclusive), sum(seconds), graph


def compare(what, text, recorded):
    kernels, relation, exclusive = recorded
    expected = essence(text.kernels, text.after, text.explicit, text.exclusive)
    meaning = {}
    assert len(kernels) == len(expected[0]), f"{what}: {len(kernels)}, not {len(expected[0])}"
    for number, (name, label) in enumerate(zip(kernels, expected[0])):
        assert meaning.setdefault(name, label) == label, f"{what}: piece {number} is {name}"
        assert relation[number] == expected[1][number], \
            f"{what}: before {label} {number}: {relation[number] ^ expected[1][number]}"
    assert exclusive == expected[2], f"{what}: {exclusive} exclude each other"


# The programs of tasks.c ------------------------------------------------------------------------

def cholesky(text, n, _):
    for k in range(n):
        text.task("potrf", inout=[(k, k)])
        for i in range(k + 1, n):
            text.task("trsm", **{"in": [(k, k)]}, inout=[(i, k)])
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                text.task("gemm", **{"in": [(i, k), (j, k)]}, inout=[(i, j)])


def sparse_lu(text, n, _):
    there = {(i, j) for i in range(n) for j in range(n) if i == j or (i + 2 * j) % 3 == 0}
    for k in range(n):
        text.task("lu", inout=[(k, k)])
        for j in range(k + 1, n):
            if (k, j) in there:
                text.task("forward", **{"in": [(k, k)]}, inout=[(k, j)])
        for i in range(k + 1, n):
            if (i, k) in there:
                text.task("divide", **{"in": [(k, k)]}, inout=[(i, k)])
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                if (i, k) in there and (k, j) in there:
                    there.add((i, j))
                    text.task("update", **{"in": [(i, k), (k, j)]}, inout=[(i, j)])


def jacobi(text, n, _):
    for s in range(n):
        own, to = s % 2, 1 - s % 2
        for i in range(n):
            text.task("sweep", **{"in": [(own, k) for k in (i - 1, i, i + 1)]}, out=[(to, i)])


def strassen(text, n, least):
    if n > least:
        for _ in range(7):
            text.task("product", lambda: strassen(text, n // 2, least))
        text.taskwait()


def sort(text, n, least):
    if n > least:
        text.task("first", lambda: sort(text, n // 2, least))
        text.task("second", lambda: sort(text, n - n // 2, least), undeferred=n <= 4 * least)
        text.taskwait()


def queens(text, n, deep, row=0, taken=()):
    if row < min(n, deep):
        with text.taskgroup():
            for c in range(n):
                if all(c != d and abs(c - d) != row - r for r, d in enumerate(taken)):
                    text.task("below", lambda c=c: queens(text, n, deep, row + 1, (*taken, c)))


def constructs(text):
    def depend():
        text.task("a", out="x")
        text.task("b", **{"in": "x"}, out="y")
        text.task("c", **{"in": "x"})
        text.task("d", mutex="x")
        text.task("e", mutex="x")
        text.task("f", lambda: (text.task("g", out="x"), text.task("h", **{"in": "x"})), inout="y")
        text.taskwait(**{"in": "x"})
        text.task("i", **{"in": "xy"})
        text.taskwait()

    def at_once():
        text.task("j")
        text.task("k", lambda: text.task("l"), undeferred=True)
        text.task("m", out="z")
        text.taskwait(**{"in": "z"})
        text.task("n", undeferred=True)
        text.task("o", lambda: text.task("p", undeferred=True))
        text.task("q")
        text.taskwait()

    def groups():
        text.task("r")
        with text.taskgroup():
            text.task("s", lambda: text.task("t"))
            with text.taskgroup():
                text.task("u")
            text.taskwait()
            text.task("v")
        text.task("w")
        with text.taskgroup():
            for _ in range(3):
                text.task("loop")
        text.task("1", lambda: (text.parallel([lambda: text.task("2")]), text.task("3")))

    phases = [lambda: text.task("first"), lambda: text.task("then")]
    text.parallel(phases, phases)
    text.parallel([lambda: (depend(), at_once(), groups())])


PROGRAMS = [("cholesky", cholesky, 4, 4), ("sparse-lu", sparse_lu, 5, 4), ("jacobi", jacobi, 4, 2),
            ("strassen", strassen, 16, 4), ("sort", sort, 100, 10), ("queens", queens, 6, 3)]


def build(compiler, source, folder, *more):
    program = folder / f"{source.stem}-{compiler}"
    # clang 14 knows of `taskwait depend` when it is asked for OpenMP 5
    extra = ["-fopenmp-version=50"] if compiler == "clang" else []
    subprocess.run([compiler, "-g", "-O1", "-fopenmp", *extra, *more, source, "-o", program, "-lm"],
                   check=True)
    return program


def duet(*words, **variables):
    return subprocess.run([DUET, *words], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})


def record(threads, out, *words, **variables):
    return duet("record", "--threads", str(threads), "--out", out, "--", *words, **variables)


def check_signals(program, folder):
    """validate --openmp leaves nothing when it is ended, whether or not its program is."""
    for number, words in [(signal.SIGTERM, ["sleep", "1000"]), (signal.SIGHUP, ["sleep", "1000"]),
                          (signal.SIGINT, [program, "queens", "6", "3"])]:
        place = folder / "temporary"
        place.mkdir()
        validate = [DUET, "validate", "--openmp", "--rounds", "100000", "--", *words]
        with subprocess.Popen(validate, env={**os.environ, "TMPDIR": str(place)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until(lambda p=process: p.poll() is not None or children_of(p))
            assert len(list(place.iterdir())) == 1, number
            process.send_signal(number)
            said = process.communicate()[1]
        assert process.returncode == 128 + number, (number, process.returncode, said)
        place.rmdir()


def check_loops(compiler, folder):
    """Parts of loops: one thread's order, equal times, and nothing between those that may overlap.

    LLVM 14 tells gcc's programs of dynamic loops only: static ones are cut where that is asked for.
    """
    program, out = build(compiler, LOOPS, folder), folder / "loops.json"
    known = [4, 2] if compiler == "gcc" else [4, 4, 2, 4]
    for options, parts, says in (
            ((), [], "(--loops)"), (("--loops", "4"), known, "are cut"),
            (("--loops", "4", "--static-loops"), [4, 4, 2, 4], "are cut")):
        more = compiler == "gcc" and len(options) < 3
        for _ in range(50):  # where other load takes the time, loops are too short to be reported,
            done = duet("record", "--threads", "1", *options, "--out", out, "--", program)
            graph = json.loads(out.read_text(encoding="utf-8"))
            tasks, loops = graph["tasks"], []
            names = [graph["kernels"][task["kernel"]] for task in tasks]
            for number, name in enumerate(names):
                if name.startswith("loop:"):
                    if name != names[number - 1]:
                        loops.append([])
                    loops[-1].append(number)
            # or something else takes as long as a loop
            if says in done.stderr and ("(--static-loops)" in done.stderr) == more and \
                    [len(loop) for loop in loops] == parts:
                break
        else:  # each time: then the loops are there at least, beside what was taken for others
            found = {names[loop[0]]: len(loop) for loop in loops}
            assert done.returncode == 0, done
            assert not collections.Counter(parts) - collections.Counter(found.values()), (
                compiler, options, names)
            continue
        sets = before([task.get("after", ()) for task in tasks])
        for loop, earlier in zip(loops, [[], *loops]):
            assert len({tasks[one]["seconds"][0] for one in loop}) == 1, loop
            assert not any("where" in tasks[one] for one in loop), loop
            assert len({sets[one] for one in loop}) == 1, loop
            # the loop of two iterations has `nowait`, and the next one is of the same region
            ordered = [sets[one] >> other & 1 for one in loop for other in earlier]
            assert all(ordered) != (len(earlier) == 2) or not earlier, (loop, ordered)
        assert sum(task["seconds"][0] for task in tasks) <= graph["makespan_s"], options
    done = duet("record", "--threads", "2", "--loops", "64", "--out", out, "--", program, "locks")
    assert done.returncode == 0 and "locks, critical" in done.stderr, done
    kernels = json.loads(out.read_text(encoding="utf-8"))["kernels"]
    assert all(name in ("serial", "barrier") or "testing_loops.c:" in name
               for name in kernels), kernels
    for path in (program, out):
        path.unlink()


def check_foreign(compiler, folder):
    """Features that LLVM's runtime lacks, or gets wrong, are reported before anything goes
    wrong."""
    source, out = folder / "foreign.c", folder / "graph.json"
    source.write_text("#include <omp.h>\nint main(int argc, char **argv)\n{\n"
                      "#pragma omp parallel\n    if (argc > 9)\n"
                      "        omp_fulfill_event((omp_event_handle_t)0);\n}\n", encoding="utf-8")
    foreign = build(compiler, source, folder)
    done = record(1, out, foreign)
    assert done.returncode == 0 and "uses omp_fulfill_event" in done.stderr, done
    # a fault in its teams of one thread ends with a line
    source.write_text("int main(void)\n{\n    int sum[9] = {1};\n#pragma omp parallel\n"
                      "#pragma omp for ordered(1)\n    for (int i = 1; i < 9; i++) {\n"
                      "#pragma omp ordered depend(sink : i - 1)\n        sum[i] = sum[i - 1];\n"
                      "#pragma omp ordered depend(source)\n    }\n    return !sum[8];\n}\n",
                      encoding="utf-8")
    foreign = build(compiler, source, folder)
    for threads in (1, 2):
        done = record(threads, out, foreign)
        assert done.returncode == 0 or (threads == 1 and done.returncode == 2 and
                                        "uses GOMP_doacross" in done.stderr and
                                        "--threads 2" in done.stderr), done
    for path in (source, foreign, out):
        path.unlink()


def check_disturbed(program):
    """Rounds in which other processes compute are named; medians include them."""
    with subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) as other:
        stat = pathlib.Path(f"/proc/{other.pid}/stat")
        until(lambda: int(stat.read_text(encoding="utf-8").split()[13]) > 0)
        done = duet("validate", "--openmp", "--rounds", "2", "--", program, "queens", "12", "3")
        other.kill()
    assert "use" in done.stderr and \
        "disturbed by other processes: rounds 1, 2\n" in done.stdout, done


def check_clock(program, folder):
    """The time of reading the clock is nobody's, also if the clock counts in steps.

    On this clock time passes only by reading it: 23 ns, in steps of tens.
    """
    source, clock, out = folder / "clock.c", folder / "clock.so", folder / "graph.json"
    source.write_text("#include <time.h>\n"
                      "int clock_gettime(clockid_t which, struct timespec *now)\n"
                      "{\n    static long ns = 1000000000;\n    ns += 23;\n"
                      "    now->tv_sec = ns / 1000000000;\n"
                      "    now->tv_nsec = ns % 1000000000 / 10 * 10;\n    return 0;\n}\n",
                      encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", clock], check=True)
    done = record(1, out, program, "sort", "1000", "10", LD_PRELOAD=str(clock))
    assert done.returncode == 0, done
    _, seconds, graph = read_graph(out)
    assert len(graph["tasks"]) > 500 and seconds < 1e-7, seconds
    for path in (source, clock, out):
        path.unlink()


def check_names(compiler, folder):
    """Copies of a construct are one kernel, and names are of the program's own lines. Names too
    long for kernels of a graph are cut; cut graphs, also packed ones, are read."""
    source = folder / "a_file_whose_name_is_longer_than_those_of_kernels.c"
    out = folder / "graph.json.gz"
    source.write_text("int x[16];\nint main(void)\n{\n#pragma omp parallel\n    {\n"
                      "#pragma omp single\n        for (int i = 0; i < 10; i++)\n"
                      "#pragma omp task\n            x[i]++;\n#pragma omp parallel\n"
                      "        x[10]++;\n    }\n}\n", encoding="utf-8")
    program = build(compiler, source, folder, "-O2")
    done = record(1, out, program)
    assert done.returncode == 0, done
    graph = json.loads(gzip.decompress(out.read_bytes()))
    names = [graph["kernels"][task["kernel"]] for task in graph["tasks"]]
    tasks = [name for name in names if name.startswith("onger_than_those_of_kernels.c:")]
    assert len(tasks) == 10 and len(set(tasks)) == 1, names
    assert all(name.startswith("parallel:n_those_of_kernels.c:")
               for name in set(names) - set(tasks)), names
    done = duet("list", out)
    assert done.returncode == 0 and f"{tasks[0]} " in done.stdout, done
    for path in (program, source, out):
        path.unlink()


def check_threads(folder):
    """Only a parallel region of a further thread is lost, not its question how many threads are."""
    source, out = folder / "threads.c", folder / "graph.json"
    source.write_text("#include <omp.h>\n#include <pthread.h>\n"
                      "static void region(void)\n{\n#pragma omp parallel\n"
                      "    omp_get_thread_num();\n}\n"
                      "static void *further(void *text)\n{\n    omp_get_max_threads();\n"
                      "    if (*(char *)text == '1')\n        region();\n    return text;\n}\n"
                      "int main(int argc, char **argv)\n{\n    pthread_t thread;\n"
                      "    omp_get_max_threads();\n    if (*argv[1] == '1')\n        region();\n"
                      "    pthread_create(&thread, NULL, further, argv[2]);\n"
                      "    return pthread_join(thread, NULL);\n}\n", encoding="utf-8")
    program = build(COMPILERS[0], source, folder, "-pthread")
    for main, further, status, lines in (
            ("1", "0", 0, []), ("1", "1", 0, ["parallel regions of further threads"]),
            ("0", "0", 1, ["the program has no parallel region", "has left no graph"])):
        done = record(1, out, program, main, further)
        said = done.stderr.splitlines()
        assert done.returncode == status and len(said) == len(lines), done
        assert all(line in told for line, told in zip(lines, said)), done
        out.unlink(missing_ok=True)
    for path in (source, program):
        path.unlink()


def check_command(example, small, folder):
    """Checks that do not depend on a compiler."""
    out = folder / "graph.json"
    done = duet("validate", "--openmp", "--rounds", "2", "--", example, "queens", "6", "3")
    # where others compute meanwhile, a line more says in which rounds
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert done.returncode == 0 and [row[0] for row in rows] == ["1", "2"], done
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in rows), done
    for words, says in [((), "which program"), (("--csv", "--", example), "exclude each other"),
                        (("--policy", "ws,heft", "--", example), "one policy"),
                        (("--static-loops", "--", example), "goes with --loops")]:
        done = duet("validate", "--openmp", *words)
        assert done.returncode == 2 and says in done.stderr and not done.stdout, done
    check_signals(example, folder)
    check_disturbed(example)
    # a program that does not end as it should leaves nothing
    done = record(1, out, small, "kill")
    assert done.returncode == 128 + 9 and not out.exists(), done
    done = record(1, out, small, "exit")
    assert done.returncode == 1 and "in a parallel region" in done.stderr, done
    # where no graph can be written nothing is run
    for place, says in ((folder / "none" / "graph.json", "No such file"), (folder, "directory")):
        done = record(1, place, small, "kill")
        assert done.returncode == 2 and says in done.stderr, done
    done = record(1, out, pathlib.Path("/bin/true"))
    assert done.returncode == 1 and "has left no graph" in done.stderr, done
    done = record(1, out, folder / "none")
    assert done.returncode == 2 and "No such file" in done.stderr, done
    done = duet("record", "--out", out, "--static-loops", "--", example)
    assert done.returncode == 2 and "goes with --loops" in done.stderr, done


def check(compiler, folder):
    example, small = build(compiler, EXAMPLE, folder), build(compiler, CONSTRUCTS, folder)
    out = folder / "graph.json"
    runs = [(name, [example, name, str(n), str(least)], lambda text, f=f, n=n, least=least:
             text.parallel([lambda: f(text, n, least)])) for name, f, n, least in PROGRAMS]
    for threads in (1, 8):
        for name, words, say in [*runs, ("constructs", [small], constructs)]:
            done = record(threads, out, *words)
            assert done.returncode == 0 and not done.stderr, (words, done)
            text = Text()
            say(text)
            recorded, seconds, graph = read_graph(out)
            compare(f"{compiler}, {threads} threads: {name}", text, recorded)
            if threads == 1 and name != "constructs":
                assert seconds <= graph["makespan_s"], (name, seconds, graph["makespan_s"])
            out.unlink()
    check_clock(example, folder)
    check_names(compiler, folder)
    check_loops(compiler, folder)
    # a `taskwait depend` on any thread may meet the assertion of LLVM's runtime
    for _ in range(5):
        done = record(2, out, small)
        assert done.returncode == 0, done
    out.unlink()
    if compiler == COMPILERS[0]:
        check_foreign(compiler, folder)
        check_command(example, small, folder)
        check_threads(folder)
    assert sorted(folder.iterdir()) == sorted([example, small]), list(folder.iterdir())


if not COMPILERS:
    repository.skip("neither gcc nor clang")
for one in COMPILERS:
    with tempfile.TemporaryDirectory() as place:
        check(one, pathlib.Path(place))
print(f"{len(PROGRAMS) + 1} programs, compiled by {' and '.join(COMPILERS)}, are their graphs")
sys.exit(0)
