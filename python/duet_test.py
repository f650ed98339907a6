# SPDX-License-Identifier: Apache-2.0
"""The Python front end: tables, graphs and policies, as docs/python.md describes them."""

import array
import collections
import ctypes
import importlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = str(ROOT / "python")
sys.path.insert(0, PACKAGE)
os.environ.setdefault("DUET", str(pathlib.Path(os.environ.get("DUET_BUILD_DIR", "build"), "duet")))

import duet  # noqa: E402: found by the path above
from duet import command  # noqa: E402

SMALL = {"platform": "idgraf", "n": 4800}


class Queue(duet.Policy):
    """One queue, with the core's own `pop`."""

    def push(self, view, tasks, by, now):
        for task in tasks:
            view.push_tail(view.shared(), task)


class Eager(Queue):
    """The built-in policy `eager`, as it would be without looking for better workers."""

    name = "mine"
    order = "heap"

    def push(self, view, tasks, by, now):
        for task in tasks:
            assert by == duet.SUBMITTER or 0 <= by < view.workers
            assert view.can_run(view.local(by), task) in (True, False) and task.id > 0
            assert task.kernel[0] == "d" and task.accesses >= 1 and task.writes(0) in (True, False)
        super().push(view, tasks, by, now)

    def pop(self, view, worker, now):
        return view.pop_head(view.shared(), worker)


class Asker(duet.Policy):
    """Asks about one worker, which is answered alone, and about all, answered at once."""

    def push(self, view, tasks, by, now):
        def answers(worker, alone=False):
            if alone:
                view.forget()
            return [view.can_run(worker, task), view.seconds(worker, task),
                    *(view.transfer_seconds(worker, task, alone) for alone in (True, False))]
        workers = range(view.workers)
        for task in tasks:
            asked = [answers(worker, alone=True) for worker in workers]
            assert [answers(worker) for worker in workers] == asked, asked
            assert all(isinstance(one[0], bool) for one in map(answers, workers))
            view.prefetch(task, view.node(workers[-1]))
            view.prefetch(task, view.nodes())  # there is no such node: nothing happens
            assert answers(workers[-1]) == answers(workers[-1], alone=True)
            view.push_tail(view.shared(), task)


class Local(duet.Policy):
    """Pushes to the local list; the own and shared lists are popped without a method, and thieves
    find the rest. All other slots count."""

    counts = collections.Counter()

    def push(self, view, tasks, by, now):
        for task in tasks:
            task.set_note(1.5)
            view.push_head(view.list(view.local(by)), task)

    def steal(self, view, thief, victim, now):
        return view.steal_tail(view.list(victim), thief)

    def plan(self, view, tasks, ranks, now):
        assert len(tasks) == len(ranks) == 35 and min(ranks) > 0
        self.counts["plan"] += len(tasks)

    def prologue(self, view, task, worker, now):
        assert task.note == 1.5
        self.counts["prologue"] += 1

    def epilogue(self, view, task, worker, times, now):
        assert 0 <= times.start_s < times.end_s <= now
        self.counts["epilogue"] += 1
        pathlib.Path(os.environ["DUET_TEST_COUNTS"]).write_text(str(dict(self.counts)))


class Wrong(Queue):
    """Raises in one of its methods."""

    def __init__(self, slot):
        self.slot, self.pops = slot, 0
        if slot == "order":
            self.order = slot

    def push(self, view, tasks, by, now):
        if self.slot == "push" and tasks[0].id > 5 or self.slot == "six" and view.workers == 6:
            raise ValueError(self.slot)
        if self.slot == "list":
            view.push_tail(0, tasks[0])
        if self.slot == "negative":
            view.list(-1)
        if self.slot == "task":
            view.seconds(tasks[0], 0)
        super().push(view, tasks, by, now)

    def pop(self, view, worker, now):
        self.pops += 1
        return {"pop": lambda: 1 / 0, "number": lambda: worker}.get(
            self.slot, lambda: view.pop_head(view.shared(), worker))()

    def init(self, view):
        if self.slot == "init":
            raise RuntimeError("not today")


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, calls):
        """Checks that each call raises an Error with a text."""
        for call, says in calls:
            with self.subTest(says), self.assertRaisesRegex(duet.Error, says):
                call()

    def module(self, name):
        try:
            return importlib.import_module(name)
        except ImportError:
            self.skipTest(f"no {name}")


class Options(Test):
    def test_words(self):
        for keywords, words in [
                ({"n": 5, "gpus": range(1, 4)}, ["--n=5", "--gpus=1,2,3"]),
                ({"set_arch": True, "hold": False, "noise": None}, ["--set-arch"]),
                ({"set_arch": [False, True]}, ["--set-arch=0,1"]),
                ({"param": {"block": [0, 320]}}, ["--param=block=0,320"]),
                ({"link": {"pcie": "1x", "qpi": "2x"}}, ["--link=pcie=1x", "--link=qpi=2x"]),
                ({"platform": pathlib.Path("a/b.json"), "policy": ("ws", "heft")},
                 ["--platform=a/b.json", "--policy=ws,heft"])]:
            self.assertEqual(command.options_of(keywords), words)

    def test_refusals(self):
        self.refused([
            (lambda: duet.simulate("cholesky", **SMALL, foo=1), "unknown option --foo"),
            (lambda: duet.simulate("cholesky", platform="nowhere"), "nowhere"),
            (lambda: duet.simulate("cholesky", **SMALL, gpus=[1, 2]).data, "several values"),
            (lambda: duet.run("gemm", n=256, tile=128).trace(), "only those of simulate"),
            (lambda: duet.Platform("nowhere").machine(), "nowhere"),
            (lambda: duet.graph({"a": {"after": ["b"]}}), "'b', which is no task"),
            (lambda: duet.graph({"a": {"after": ["b"]}, "b": {"after": ["a"]}}), "cycle"),
            (lambda: duet.Graph().add("k", 1, r=[3]), "no data number 3"),
            (lambda: duet.Runtime(simulate="nowhere"), "nowhere"),
            (lambda: duet.Runtime(foo=1), "foo"),
            (lambda: duet.Runtime(cpus="x"), "cpus"),
            (lambda: duet.policy_object(Eager(), "mine"), "ends in .so"),
            (lambda: duet.simulate("cholesky", **SMALL, policy=[Eager(), Eager()]),
             "two policies are called mine"),
            (lambda: duet.tune("cholesky", **SMALL, policy=Wrong("")), "for simulate"),
            (lambda: duet.simulate("cholesky", **SMALL, policy=Eager), "is an object"),
            (lambda: duet.simulate("cholesky", **SMALL, policy=duet.policy_object(
                Eager(), self.folder / "mine.so")), "policy in Python, .* -m duet GRAPH.json"),
            (lambda: duet.graph({"a": {"second": 1}}), "task 'a' has no member 'second': known"),
            *[(lambda seconds=seconds: duet.graph({"a": {"seconds": seconds}}), "'a': seconds are")
              for seconds in (-1, float("nan"), "long", {"cpu": -1})],
            (lambda: duet.Runtime(policy=Eager()), "are for simulations"),
            *[(lambda slot=slot: duet.simulate("cholesky", **SMALL, policy=Wrong(slot)), says)
              for slot, says in [
                  ("push", r"^the simulation of wrong .*: ValueError: push \(duet_test.py:.*push"),
                  ("pop", "ZeroDivisionError"), ("init", "RuntimeError: not today"),
                  ("list", "0 is no list"), ("negative", "the list of worker -1 of 12"),
                  ("task", "0 is no task"),
                  ("number", "pop returned 0, which is no task"),
                  ("order", "order is one of deque, heap, sorted, nearest, heap-nearest, not "
                           "'order'")]]])


class Tables(Test):
    def test_rows(self):
        table = duet.simulate("cholesky", **SMALL, gpus=[2, 1], policy=["ws", "heft"])
        self.assertEqual([(row["gpus"], row["policy"]) for row in table],
                         [(1, "ws"), (1, "heft"), (2, "ws"), (2, "heft")])
        self.assertEqual(table.best()["policy"], "heft")
        self.assertRegex(str(table), r"^gpus  cpus  policy  makespan_s +gflops\n1  .* ws  .*\n1 ")
        one = duet.simulate("cholesky", **SMALL, gpus=2, policy="heft")
        self.assertEqual(one[0]["makespan_s"], table[3]["makespan_s"])
        self.assertEqual(one[0]["makespan_s"], one.data["runs"][0]["makespan_s"]["median"])

    def test_files(self):
        table = duet.simulate("cholesky", **SMALL, policy=["ws", "heft"], noise=True, reps=2)
        self.assertEqual([row["seed"] for row in table], [1, 2, 1, 2])
        trace = table.trace(self.folder / "t.json", row=3)
        tasks = trace.tasks()
        self.assertAlmostEqual(max(task["end_s"] for task in tasks), table[3]["makespan_s"], 4)
        self.assertEqual({task["worker"][:3] for task in tasks}, {"cpu", "gpu"})
        self.assertTrue(trace.explain(no_what_if=True)["sentence"])
        self.assertEqual(duet.compare(trace, trace)["summary"]["worst"], 0)
        self.assertIn("<svg", table.gantt(self.folder / "g.svg").read_text())

    def test_others(self):
        self.assertIn("policy", duet.tune("cholesky", **SMALL, budget="100ms")[0]["settings"])
        self.assertIn("heft", duet.policies())
        self.assertIn("cholesky", duet.workloads())
        idgraf = duet.platforms()["idgraf"]
        self.assertEqual(idgraf.warnings(), "")
        self.assertEqual(len(idgraf.machine(gpus=2)["machine"]["workers"]), 12)
        self.assertEqual(duet.simulate("cholesky", platform=idgraf, n=4800)[0]["platform"],
                         "idgraf")


class Graphs(Test):
    TASKS = {"c": {"seconds": 1, "after": ["a", "b"]}, "a": {"seconds": {"cpu": 2, "cuda": 1}},
             "b": {"seconds": 2, "r": ["x"], "kernel": "k", "priority": 3}}

    def seconds(self, graph, **options):
        return duet.simulate(graph, platform="idgraf", no_costs=True, policy="heft",
                             **options)[0]["makespan_s"]

    def test_dict(self):
        graph = duet.graph(self.TASKS)
        self.assertEqual([task["name"] for task in graph.tasks], ["a", "b", "c"])
        self.assertEqual(graph.tasks[1], {"kernel": 1, "accesses": [[0, "r"]], "name": "b",
                                          "priority": 3, "seconds": {"reference": 2}})
        self.assertAlmostEqual(self.seconds(graph), 3)
        self.assertAlmostEqual(self.seconds(self.TASKS), 3)
        again = duet.read_graph(graph.save(self.folder / "g.json"))
        self.assertEqual(self.seconds(again), self.seconds(graph))
        dot = graph.save(self.folder / "g.dot", format="dot")
        self.assertEqual(len(duet.read_graph(dot).tasks), 3)
        self.assertAlmostEqual(self.seconds(duet.read_graph(ROOT / "examples/graphs/diamond.json")),
                               0.15, delta=0.1)

    def test_networkx(self):
        source = self.module("networkx").DiGraph()
        source.add_node("a", seconds=1, where="cpu")
        source.add_nodes_from(["b", "c"], seconds=2)
        source.add_edge("a", "b", bytes=8e6)
        source.add_edge("a", "c")
        graph = duet.graph(source)
        self.assertEqual(graph.data, [{"name": "a:8000000", "bytes": 8000000, "initial": False}])
        self.assertEqual([task.get("after") for task in graph.tasks], [None, None, [0]])
        self.assertEqual([task.get("accesses") for task in graph.tasks],
                         [[[0, "w"]], [[0, "r"]], None])
        self.assertAlmostEqual(self.seconds(graph, gpus=0), 3)

    def test_dask(self):
        increment = lambda x: x + 1  # noqa: E731: as Dask's own graphs have them
        graph = duet.graph({"x": 1, "y": (increment, "x"), ("z", 0): (max, ["y", "x"]),
                            "s": (sum, [("z", 0), "y"]), "t": ("z", 0)}, seconds=1)
        self.assertEqual([graph.kernels[task["kernel"]] for task in graph.tasks],
                         ["data", "<lambda>", "max", "sum", "data"])
        self.assertEqual([task.get("after") for task in graph.tasks],
                         [None, [0], [0, 1], [1, 2], [2]])
        self.assertAlmostEqual(self.seconds(graph), 3)


class Policies(Test):
    def test_simulate(self):
        table = duet.simulate("cholesky", platform="idgraf", n=[4800, 5760],
                              policy=["eager", Eager(), "heft"])
        self.assertEqual([row["policy"] for row in table], ["eager", "mine", "heft"] * 2)
        self.assertEqual([row["n"] for row in table], [4800] * 3 + [5760] * 3)
        for at in (0, 3):
            self.assertEqual(table[at]["makespan_s"], table[at + 1]["makespan_s"])
        alone = duet.simulate("cholesky", platform="idgraf", n=5760, policy="heft")
        self.assertEqual(table[5]["makespan_s"], alone[0]["makespan_s"])
        self.assertEqual(len(table.trace(row=1).tasks()), 35)

    def test_study(self):
        for policies in (["ws", "heft"], ["eager", Eager()]):
            names = [getattr(one, "name", one) for one in policies]
            out = self.folder / f"{names[0]}.db"
            for _ in range(2):  # what is there is found again
                rows = duet.study("cholesky", platform="idgraf", n=[4800, 5760], out=out,
                                  policy=policies)
                self.assertEqual([(row["n"], row["policy"]) for row in rows],
                                 [(n, name) for n in (4800, 5760) for name in names])
                self.assertRegex(str(rows), r"(?s) lead % .*in 2 cases: .*(mine\.so|heft) 1[.]")
            made = {row["made_at"] for row in rows}
            shown = command.rows_of(command.call("study", "--show", f"--out={out}", "--csv"))
            self.assertEqual({row["made_at"] for row in shown}, made)
        self.assertEqual(rows[0]["makespan_s"], rows[1]["makespan_s"])

    def test_graphs(self):
        graphs = [duet.graph({"a": {"seconds": seconds, "kernel": "d"}}) for seconds in (1, 2)]
        table = duet.simulate(graphs, platform="idgraf", policy=Queue(), gpus=[1, 0], no_costs=True)
        self.assertEqual([(row["gpus"], row["makespan_s"]) for row in table],
                         [(0, 1), (1, 1), (0, 2), (1, 2)])
        with duet.Runtime(simulate="idgraf", policy=Queue()) as runtime:
            runtime.submit_graph(graphs[0].save(self.folder / "g.json"))
            self.refused([(lambda: runtime.submit_graph("nowhere.json"), "nowhere")])
        wrong = Wrong("pop")
        with self.assertRaisesRegex(duet.Error, "division by zero"):
            with duet.Runtime(simulate="idgraf", policy=wrong) as runtime:
                runtime.submit_graph(self.folder / "g.json")
        self.assertLess(wrong.pops, 1000)  # it was 4,000,000 when each one cancelled the run

    def test_failed(self):
        table = duet.simulate("cholesky", **SMALL, cpus=4, gpus=[1, 2], policy=Wrong("six"))
        self.assertEqual([(row["gpus"], row.get("error")) for row in table][0], (1, None))
        self.assertIn("ValueError: six", table[1]["error"])
        self.assertEqual(table.best()["gpus"], 1)

    def test_questions(self):
        self.assertEqual(duet.simulate("cholesky", **SMALL, policy=Asker())[0]["tasks"], 35)

    def test_slots(self):
        counts = self.folder / "counts"
        os.environ["DUET_TEST_COUNTS"] = str(counts)
        duet.simulate("cholesky", **SMALL, policy=Local(), hold=True)
        self.assertEqual(counts.read_text(), "{'plan': 35, 'prologue': 35, 'epilogue': 35}")

    def test_scripts(self):
        script = self.folder / "script.py"
        head = "import duet, duet_test\nclass Mine(duet_test.Queue):\n    pass\n"
        call = "print(duet.simulate('cholesky', platform='idgraf', n=4800, policy=Mine()))\n"
        open_only = ("import gc, duet\ndef work():\n    runtime = duet.Runtime(cpus=2)\n"
                     "    for _ in range(1000): runtime.task(sum, [1, 2])\nwork()\ngc.collect()\n")
        for text, status, says in [
                (open_only, 0, "a Runtime was not closed"),
                (f"{head}if __name__ == '__main__':\n    {call}", 0, "makespan_s"),
                (f"{head}{call}", 1, "put its calls of duet behind `if __name__ ==")]:
            script.write_text(text)
            result = subprocess.run([sys.executable, script], text=True, capture_output=True,
                                    check=False, env={**os.environ, "PYTHONPATH": PACKAGE})
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(says, result.stdout + result.stderr)


class Runs(Test):
    @staticmethod
    def axpy(alpha, x, y):
        for i, value in enumerate(x):
            y[i] += alpha * value

    def test_buffers(self):
        memcpy = ctypes.CDLL(None).memcpy
        memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        for settings in ({"cpus": 2}, {"cpus": 1, "gpus": 1, "emulate": "free"}):
            x, y = array.array("d", range(100)), array.array("d", [1] * 100)
            with duet.Runtime(**settings) as runtime:
                dx, dy = runtime.array(x), runtime.array(y)
                for _ in range(10):
                    runtime.task(self.axpy, 2.0, duet.R(dx), duet.RW(dy))
                self.assertEqual(runtime.fetch(dy)[3], 61)
                runtime.task(self.axpy, 1.0, duet.R(dx), duet.COMMUTE(dy), priority=1, name="k")
                self.assertEqual(runtime.fetch(dy)[3], 64)
                runtime.task(memcpy, duet.W(dy), duet.R(dx), 800)
            self.assertEqual(x, y)

    def test_refusals(self):
        x = array.array("d", range(100))

        def write(x):
            x[0] = 1

        def runs(argument):
            with duet.Runtime(cpus=1) as runtime:
                runtime.task(write, argument(runtime.array(x)))
        with duet.Runtime(cpus=1) as runtime:
            other = runtime.array(x)
        with duet.Runtime(cpus=1) as runtime:
            self.refused([
                (lambda: runs(duet.R), r"a task has raised TypeError: cannot modify read-only "
                 r"memory \(duet_test.py:[0-9]+, in write\)"),
                (lambda: runs(lambda data: 5), "a task has raised TypeError: 'int' object"),
                (lambda: runs(lambda data: data), "by a mode: duet.R"),
                (lambda: runs(lambda data: duet.R(x)), "data of this runtime"),
                (lambda: runtime.fetch(other), "data of this runtime"),
                (lambda: runtime.array(b"text"), "read-only"),
                (lambda: runtime.array(memoryview(x)[::2]), "contiguous"),
                (lambda: runtime.task(write, duet.R(other)), "this runtime")])
        with self.assertRaisesRegex(KeyError, "mine"):
            with duet.Runtime(cpus=1) as runtime:
                runtime.task(write, duet.R(runtime.array(x)))
                raise KeyError("mine")

    def test_interrupt(self):
        handled = threading.Event()

        def handle(number, frame):
            handled.set()
            raise KeyboardInterrupt

        def kernel():
            os.kill(os.getpid(), signal.SIGINT)
            self.assertTrue(handled.wait(600))
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handle))
        with self.assertRaises(KeyboardInterrupt), duet.Runtime(cpus=1) as runtime:
            runtime.task(kernel)
            runtime.wait()

    def test_numpy(self):
        numpy = self.module("numpy")
        n, t = 64, 16
        left = numpy.arange(n * n, dtype=float).reshape(n, n) / n
        right, out = numpy.asfortranarray(left.T.copy()), numpy.zeros((n, n))

        def product(a, b, c):
            c += a @ b
        with duet.Runtime(cpus=1, gpus=1, emulate="free") as runtime:
            a, b, c = ({(i, j): runtime.array(m[i:i + t, j:j + t]) for i in range(0, n, t)
                        for j in range(0, n, t)} for m in (left, right, out))
            for i, j in c:
                for k in range(0, n, t):
                    runtime.task(product, duet.R(a[i, k]), duet.R(b[k, j]), duet.RW(c[i, j]))
        self.assertTrue(numpy.allclose(out, left @ right))
        # the pivots of the example in C, in which the kernels are loops
        printed = subprocess.run([sys.executable, ROOT / "examples/tiled_cholesky.py"], check=True,
                                 env={**os.environ, "PYTHONPATH": PACKAGE, "DUET_CPUS": "2"},
                                 capture_output=True, text=True).stdout.split()
        self.assertAlmostEqual(float(printed[4]), 0.988338386813, 9)
        self.assertAlmostEqual(float(printed[9]), 1.04247325663, 9)


if __name__ == "__main__":
    unittest.main()
