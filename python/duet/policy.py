# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies in Python: the slots of duet/policy.h as methods of a class."""

import ctypes
import functools
import importlib
import inspect
import itertools
import os
import pathlib
import pickle
import re
import runpy
import shutil
import struct
import sys
import tempfile

from duet import command, library
from duet.command import Error
from duet.library import BOOL, DOUBLE, INT, POINTER, SIZE, TEXT, U64

SUBMITTER = -1  # `by` of push when a task is ready at its submission
MARK = b"duet-python-policy"  # ends a shared object that holds a policy in Python


def _questions():
    """Functions of duet/policy.h whose first argument is the view: methods of View."""
    unsigned = ctypes.c_uint
    return {
        "list": ("duet_view_list", POINTER, unsigned),
        "shared": ("duet_view_shared", POINTER),
        "new_list": ("duet_view_new_list", POINTER, INT),
        "push_head": ("duet_push_head", None, POINTER, POINTER),
        "push_tail": ("duet_push_tail", None, POINTER, POINTER),
        "push_sorted": ("duet_push_sorted", None, POINTER, POINTER, DOUBLE),
        "nodes": ("duet_view_nodes", unsigned),
        "arch": ("duet_view_arch", unsigned, unsigned),
        "node": ("duet_view_node", unsigned, unsigned),
        "is_device": ("duet_view_is_device", BOOL, unsigned),
        "local": ("duet_view_local", unsigned, INT),
        "random": ("duet_view_random", unsigned, INT, unsigned),
        "can_run": ("duet_view_can_run", BOOL, unsigned, POINTER),
        "seconds": ("duet_view_seconds", DOUBLE, unsigned, POINTER),
        "transfer_seconds": ("duet_view_transfer_seconds", DOUBLE, unsigned, POINTER, BOOL),
        "copy_alone_seconds": ("duet_view_copy_alone_seconds", DOUBLE, unsigned, unsigned, U64),
        "valid_bytes": ("duet_view_valid_bytes", U64, unsigned, POINTER),
        "valid": ("duet_view_valid", BOOL, unsigned, POINTER, SIZE),
        "capacity_bytes": ("duet_view_capacity_bytes", U64, unsigned),
        "free_bytes": ("duet_view_free_bytes", U64, unsigned),
        "load": ("duet_view_load", DOUBLE, unsigned),
        "idle": ("duet_view_idle", BOOL, unsigned),
        "prefetch": ("duet_view_prefetch", None, POINTER, unsigned),
    }


class View:
    """Access to the scheduler, valid during a call: questions and lists of duet/policy.h.

    `workers` and `archs` are numbers; the other functions of duet/policy.h that begin with
    duet_view_, duet_push_, duet_pop_ and duet_steal_ are methods without this beginning (that of
    duet_view_list is `list`).
    """

    def __init__(self, pointer):
        self.pointer = pointer
        self.workers = library.function("duet_view_workers", ctypes.c_uint, POINTER)(pointer)
        self.archs = library.function("duet_view_archs", ctypes.c_uint, POINTER)(pointer)
        for name, (symbol, result, *arguments) in _questions().items():
            found = library.function(symbol, result, POINTER, *arguments)
            setattr(self, name, functools.partial(found, pointer))
        for name in ("pop_head", "pop_tail", "steal_tail"):
            found = library.function("duet_" + name, POINTER, POINTER, POINTER, ctypes.c_uint)
            setattr(self, name, functools.partial(_take, found, pointer))

    @staticmethod
    def list_length(tasks):
        """About as many tasks as are on a list."""
        return library.function("duet_list_length", SIZE, POINTER)(tasks)


def _take(found, pointer, tasks, worker):
    task = found(pointer, tasks, worker)
    return task and Task(task)


def _answer(symbol, result, *arguments):
    """A function of duet/policy.h whose first argument is a task: looked up when first called."""
    cached = []

    def ask(self, *values):
        if not cached:
            cached.append(library.function(symbol, result, POINTER, *arguments))
        return cached[0](self, *values)
    return ask if arguments else property(ask)


class Task(int):
    """A task as a policy sees it: the functions of duet/policy.h that begin with duet_task_."""

    id = _answer("duet_task_id", U64)
    complexity = _answer("duet_task_complexity", DOUBLE)
    accesses = _answer("duet_task_accesses", SIZE)
    writes = _answer("duet_task_writes", BOOL, SIZE)
    reads = _answer("duet_task_reads", BOOL, SIZE)
    access_bytes = _answer("duet_task_access_bytes", U64, SIZE)
    data = _answer("duet_task_data", U64, SIZE)
    priority = _answer("duet_task_priority", INT)
    note = _answer("duet_task_note", DOUBLE)
    set_priority = _answer("duet_task_set_priority", None, INT)
    set_note = _answer("duet_task_set_note", None, DOUBLE)

    @property
    def kernel(self):
        """The name of its kernel."""
        return library.function("duet_task_kernel", TEXT, POINTER)(self).decode()


class Times(ctypes.Structure):
    """Measured times of a finished task: struct duet_times."""

    _fields_ = [("start_s", DOUBLE), ("end_s", DOUBLE), ("predicted_s", DOUBLE)]


class Policy:
    """A policy: a subclass has at least `push`, and `pop` unless it is that of its own list, then
    the shared one. The other slots of duet/policy.h are optional.

        def init(self, view)
        def push(self, view, tasks, by, now)
        def pop(self, view, worker, now)                -> task or None
        def steal(self, view, thief, victim, now)       -> task or None
        def plan(self, view, tasks, ranks, now)
        def prologue(self, view, task, worker, now)
        def epilogue(self, view, task, worker, times, now)
    """

    name = None  # in tables; None: that of the class, in lower case
    order = "deque"  # of the workers' lists and the shared one: "deque", "heap" or "sorted"
    may_decline = False  # struct duet_policy says when it has to be True
    pop = steal = init = plan = prologue = epilogue = None

    def push(self, view, tasks, by, now):
        """Places every task on a list."""
        raise NotImplementedError(f"policy {name_of(self)} has no push")


ORDERS = ("deque", "heap", "sorted")
SLOT = ctypes.CFUNCTYPE
PUSH = SLOT(None, POINTER, POINTER, POINTER, SIZE, INT, DOUBLE)
INIT = SLOT(INT, POINTER, POINTER)
PLAN = SLOT(None, POINTER, POINTER, POINTER, SIZE, POINTER, DOUBLE)
POP = SLOT(POINTER, POINTER, POINTER, ctypes.c_uint, DOUBLE)
STEAL = SLOT(POINTER, POINTER, POINTER, ctypes.c_uint, ctypes.c_uint, DOUBLE)
PROLOGUE = SLOT(None, POINTER, POINTER, POINTER, ctypes.c_uint, DOUBLE)
EPILOGUE = SLOT(None, POINTER, POINTER, POINTER, ctypes.c_uint, ctypes.POINTER(Times), DOUBLE)


class Slots(ctypes.Structure):
    """struct duet_policy of duet/policy.h."""

    _fields_ = [("name", TEXT), ("description", TEXT), ("source", TEXT), ("order", INT),
                ("keeps_nested", BOOL), ("may_decline", BOOL), ("state_size", SIZE),
                ("state_size_a_worker", SIZE), ("state_size_a_data", SIZE),
                ("state_size_a_place", SIZE), ("model", TEXT), ("parameters", POINTER),
                ("candidates", POINTER), ("init", INIT), ("fini", POINTER), ("push", PUSH),
                ("plan", PLAN), ("pop", POP), ("steal", STEAL), ("victims", POINTER),
                ("victim", POINTER), ("prologue", PROLOGUE), ("revoke", POINTER),
                ("epilogue", EPILOGUE)]


def name_of(policy):
    """The name of a policy in tables."""
    return policy.name or type(policy).__name__.lower()


class Installed:
    """A policy in the slots of a shared object that duet opens by the same path."""

    def __init__(self, policy, path):
        library.library()
        self.error = None  # what a method has raised: the run is then cancelled
        self.runtime = None
        self.policy = policy
        self._views = {}  # by address: duet has them on its stack, at few places
        self._slots = Slots.in_dll(ctypes.CDLL(path), "duet_policy")
        self._set()

    def _look(self, pointer):
        view = self._views.get(pointer)
        if view is None:
            if len(self._views) > 64:
                self._views.clear()
            view = self._views[pointer] = View(pointer)
        return view

    def _failed(self):
        if self.error is None:
            self.error = sys.exc_info()[1]
        if self.runtime:
            library.function("duet_cancel", None, POINTER)(self.runtime)

    def _set(self):
        policy, look, slots = self.policy, self._look, self._slots

        def slot(kind, method, convert):
            if method is None:
                return kind()

            def called(_, view, *arguments):
                try:
                    return convert(method, look(view), *arguments)
                except BaseException:  # Ctrl-C among them; ctypes would only print it
                    self._failed()
                    return None if kind._restype_ is not INT else -2  # DUET_EINVAL
            return kind(called)

        def push(method, view, batch, count, by, now):
            method(view, [Task(task) for task in (POINTER * count).from_address(batch)], by, now)

        def plan(method, view, tasks, count, ranks, now):
            method(view, [Task(task) for task in (POINTER * count).from_address(tasks)],
                   list((DOUBLE * count).from_address(ranks)), now)

        def with_task(method, view, task, *arguments):
            method(view, Task(task), *arguments)

        def epilogue(method, view, task, worker, times, now):
            method(view, Task(task), worker, times.contents, now)

        def init(method, view):
            method(view)
            return 0

        self._kept = [name_of(policy).encode()]
        slots.name, slots.order = self._kept[0], ORDERS.index(policy.order)
        slots.may_decline = policy.may_decline
        slots.push = slot(PUSH, policy.push, push)
        slots.pop = slot(POP, policy.pop, lambda method, *rest: method(*rest))
        if policy.pop is None:
            own = library.library().duet_pop_own_or_shared
            slots.pop = ctypes.cast(own, POP)
        slots.steal = slot(STEAL, policy.steal, lambda method, *rest: method(*rest))
        slots.init = slot(INIT, policy.init, init)
        slots.plan = slot(PLAN, policy.plan, plan)
        slots.prologue = slot(PROLOGUE, policy.prologue, with_task)
        slots.epilogue = slot(EPILOGUE, policy.epilogue, epilogue)


# --------------------------------------------------------------------------------------------
# Shared objects: a copy of libduet-python-policy.so, with the policy behind its end

def policy_object(policy, path):
    """Writes a shared object for `--policy`, of a policy that processes of Python find in it:
    `duet study --policy heft,./mine.so ... -- python3 -m duet graph.json`. Returns its path."""
    path = pathlib.Path(path)
    if path.suffix != ".so":
        raise Error(f"{path}: the name of a policy's shared object ends in .so")
    try:
        source = inspect.getsource(sys.modules[type(policy).__module__])
    except (OSError, TypeError):
        source = ""
    main = getattr(sys.modules["__main__"], "__file__", None)
    dumps = pickle.dumps
    if type(policy).__module__ == "__main__" and (main is None or not os.path.isfile(main)):
        try:
            dumps = importlib.import_module("cloudpickle").dumps
        except ImportError:
            raise Error(f"policy {name_of(policy)} is of an interactive session, where other "
                        "processes cannot find it: write it to a file, or install cloudpickle"
                        ) from None
    held = pickle.dumps({"main": main and os.path.abspath(main), "path": sys.path,
                         "module": type(policy).__module__, "policy": dumps(policy),
                         "source": source})  # so that studies see that it has changed
    shutil.copyfile(library.module_path("python-policy"), path)
    with open(path, "ab") as file:
        file.write(held + struct.pack("<Q", len(held)) + MARK)
    return path


def installed(path):
    """The Installed policy of a shared object, or None: it holds none in Python."""
    if not path or not os.path.isfile(path):
        return None
    content = pathlib.Path(path).read_bytes()
    if not content.endswith(MARK):
        return None
    (size,) = struct.unpack_from("<Q", content, len(content) - len(MARK) - 8)
    held = pickle.loads(content[-len(MARK) - 8 - size:-len(MARK) - 8])
    sys.path += [folder for folder in held["path"] if folder not in sys.path]
    if held["module"] == "__main__" and held["main"] and os.path.isfile(held["main"]):
        _load_main(held["main"])
    return Installed(pickle.loads(held["policy"]), path)


def _load_main(path):
    """Runs the script that has made a policy, as multiprocessing does, for its classes."""
    command.loading = path
    try:
        names = runpy.run_path(path, run_name="__mp_main__")
    finally:
        command.loading = None
    sys.modules["__main__"].__dict__.update(
        {name: value for name, value in names.items() if not name.startswith("__")})


# --------------------------------------------------------------------------------------------
# Simulations with such policies: the task graph is submitted by a process of Python

PROBLEM = ("n", "tile", "precision", "param")  # options that the graph has answered


def is_python(policies):
    """True if a value of the option `policy` has one in Python."""
    return any(isinstance(one, Policy) for one in _listed(policies))


def _listed(value):
    if isinstance(value, (list, tuple, range, set)):
        return list(value)
    return [value]


def _objects(policies, folder):
    """The policies as texts, and the names of those that are in Python by their text."""
    texts, names = [], {}
    for one in _listed(policies):
        if isinstance(one, Policy):
            text = str(policy_object(one, pathlib.Path(folder, f"{name_of(one)}.so")))
            if text in names:
                raise Error(f"two policies are called {name_of(one)}: set `name` of one of them")
            names[text] = one = name_of(one)
            texts.append(text)
        else:
            texts.append(str(one))
    return texts, names


def _problems(workload, options, folder):
    """Writes the task graphs of all combinations of the problem's options: those by file."""
    given = {name: _listed(options[name]) for name in PROBLEM if options.get(name) is not None}
    made = {name: options[name] for name in ("platform", "cpus", "gpus", "starpu_models")
            if options.get(name) is not None and len(_listed(options[name])) == 1}
    problems = {}
    for values in itertools.product(_listed(workload), *given.values()):
        one, problem = values[0], dict(zip(given, values[1:]))
        known = hasattr(one, "save") or os.path.isfile(str(one))
        name = getattr(one, "name", None) or pathlib.Path(str(one)).stem
        path = pathlib.Path(folder, re.sub(r"[^\w.-]+", "_", "-".join(
            [name, *(f"{key}{value}" for key, value in problem.items())])) + ".json")
        while str(path) in problems:  # of another graph with that name
            path = path.with_name("_" + path.name)
        if hasattr(one, "save"):
            one.save(path)
        else:
            command.call("export", os.fspath(one), *command.options_of(
                {**({} if known else made), **problem, "out": path}))
        problems[str(path)] = {"workload": name, **problem}
    return problems


def _child_environment():
    package = str(pathlib.Path(__file__).resolve().parents[1])
    return {"PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "DUET_LIBRARY": library.library_path()}


def _run_each(name, workload, options, folder):
    """(text, its rows) of `duet simulate` or `duet study`, a call for each problem."""
    if workload is None:
        raise Error("a program finds policies in Python by itself, if it opens duet.Runtime: "
                    "write them with duet.policy_object, and give the path")
    texts, names = _objects(options["policy"], folder)
    rest = {**{key: value for key, value in options.items() if key not in PROBLEM}, "policy": texts}
    problems = _problems(workload, options, folder)
    several = [list(problems)] if name == "study" else [[path] for path in problems]
    for paths in several:
        listed = paths[0] if len(paths) == 1 else "{%s}" % ",".join(paths)
        text = command.runs(name, ["--", sys.executable, "-m", "duet", listed], rest,
                            _child_environment())
        rows = [] if options.get("json") else command.rows_of(text)
        for row in rows:
            path = paths[0] if len(paths) == 1 else next(
                (value for value in row.values() if value in problems), None)
            row.update(problems.get(path, {}), settings=None,
                       policy=names.get(row["policy"], row["policy"]))
        yield text, command.in_order(rows, [names.get(one, one) for one in texts])


def simulate(workload, options):
    """duet.simulate where `policy` has one in Python."""
    def again(row, further):
        stated = {}
        if row is not None:
            stated = command.restated(row, options)
            stated["policy"] = next(one for one in _listed(options["policy"])
                                    if (name_of(one) if isinstance(one, Policy) else one)
                                    == row["policy"])
        with tempfile.TemporaryDirectory() as folder:
            return list(_run_each("simulate", workload, {**options, **stated, **further}, folder))
    return command.Table([row for _, rows in again(None, {}) for row in rows],
                         lambda row, further: again(row, further)[0][0])


def study(workload, out, options):
    """duet.study where `policy` has one in Python; graphs and policies are kept beside `out`."""
    folder = pathlib.Path(f"{os.fspath(out)}.files")
    folder.mkdir(parents=True, exist_ok=True)
    return command.Table(row for _, rows in
                         _run_each("study", workload, {**options, "out": out}, folder)
                         for row in rows)
