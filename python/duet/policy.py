# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies in Python: the slots of duet/policy.h as methods of a class."""

import ctypes
import functools
import inspect
import itertools
import os
import pathlib
import pickle
import re
import runpy
import shutil
import sys
import tempfile

from duet import command, library
from duet.command import Error, listed
from duet.library import BOOL, DOUBLE, INT, POINTER, SIZE, TEXT, U64, UINT

SUBMITTER = -1  # `by` of push when a task is ready at its submission
MARK = b"duet-python-policy"  # ends a shared object that holds a policy in Python


class Address(int):
    """An address in C: no other number, and nothing else, is taken for it."""

    @classmethod
    def from_param(cls, value):
        if not isinstance(value, cls):
            raise TypeError(f"{value!r} is no {cls.__name__.lower()}")
        return POINTER.from_param(value)

    @classmethod
    def made(cls, address, *_):
        """What a function in C returned; None of NULL."""
        return address and cls(address)


class List(Address):
    """A list of tasks: view.list(worker), view.shared() or view.new_list(order)."""


def _answer(name, result, *arguments):
    """A function of duet/policy.h whose first argument is a task."""
    def ask(self, *values):
        return library.function("duet_task_" + name, result, POINTER, *arguments)(self, *values)
    return ask if arguments else property(ask)


class Task(Address):
    """A task as a policy sees it: the functions of duet/policy.h that begin with duet_task_."""

    id = _answer("id", U64)
    complexity = _answer("complexity", DOUBLE)
    accesses = _answer("accesses", SIZE)
    writes = _answer("writes", BOOL, SIZE)
    reads = _answer("reads", BOOL, SIZE)
    access_bytes = _answer("access_bytes", U64, SIZE)
    data = _answer("data", U64, SIZE)
    priority = _answer("priority", INT)
    note = _answer("note", DOUBLE)
    set_priority = _answer("set_priority", None, INT)
    set_note = _answer("set_note", None, DOUBLE)
    _kernel = _answer("kernel", TEXT)
    kernel = property(lambda self: self._kernel.decode())


QUESTIONS = {  # functions of duet/policy.h whose first argument is the view, without duet_
    "view_list": (List, UINT),
    "view_shared": (List,),
    "view_new_list": (List, INT),
    "push_head": (None, List, Task),
    "push_tail": (None, List, Task),
    "push_sorted": (None, List, Task, DOUBLE),
    "pop_head": (Task, List, UINT),
    "pop_tail": (Task, List, UINT),
    "steal_tail": (Task, List, UINT),
    "view_nodes": (UINT,),
    "view_arch": (UINT, UINT),
    "view_node": (UINT, UINT),
    "view_is_device": (BOOL, UINT),
    "view_local": (UINT, INT),
    "view_random": (UINT, INT, UINT),
    "view_can_run": (BOOL, UINT, Task),
    "view_seconds": (DOUBLE, UINT, Task),
    "view_transfer_seconds": (DOUBLE, UINT, Task, BOOL),
    "view_copy_alone_seconds": (DOUBLE, UINT, UINT, U64),
    "view_valid_bytes": (U64, UINT, Task),
    "view_valid": (BOOL, UINT, Task, SIZE),
    "view_capacity_bytes": (U64, UINT),
    "view_free_bytes": (U64, UINT),
    "view_load": (DOUBLE, UINT),
    "view_idle": (BOOL, UINT),
    "view_prefetch": (None, Task, UINT),
}


def _for_all(ask_all, workers, *asks):
    """Questions about a worker and a task (can_run, seconds, transfer_seconds), and what begins
    another call. Once a call has asked about a task for two workers in turn, all workers are asked
    about it and later tasks at once, which is much quicker."""
    answers, nobody = (DOUBLE * (4 * workers))(), object()
    of = seen = nobody
    by = several = can = seconds = shared = lone = None

    def more(number, worker, task, *alone):
        nonlocal of, seen, by, several, can, seconds, shared, lone
        several = several or task is seen and worker != by
        if not several:
            seen, by = task, worker
            return asks[number](worker, task, *alone)
        ask_all(task, answers)
        can, seconds, shared, lone = (answers[i * workers:(i + 1) * workers] for i in range(4))
        can, of = list(map(bool, can)), task
        return questions[number](worker, task, *alone)

    def forget():
        nonlocal of, seen, several
        of, seen, several = nobody, nobody, False
    questions = (
        lambda worker, task: can[worker] if task is of else more(0, worker, task),
        lambda worker, task: seconds[worker] if task is of else more(1, worker, task),
        lambda worker, task, alone: ((lone if alone else shared)[worker] if task is of
                                     else more(2, worker, task, alone)))
    return (*questions, forget)


class View:
    """Access to the scheduler, valid during a call, by functions of duet/policy.h: `list` is
    duet_view_list, `push_head` is duet_push_head. `workers` and `archs` are numbers."""

    def __init__(self, pointer, module):
        self.workers = library.function("duet_view_workers", UINT, POINTER)(pointer)
        self.archs = library.function("duet_view_archs", UINT, POINTER)(pointer)
        for name, (result, *arguments) in QUESTIONS.items():
            made = getattr(result, "made", None)
            found = library.function("duet_" + name, POINTER if made else result, POINTER,
                                     *arguments)
            if made:
                found.errcheck = made
            setattr(self, name.removeprefix("view_"), functools.partial(found, pointer))
        self.list, self.shared = functools.cache(self.list), functools.cache(self.shared)
        ask_all = functools.partial(library.function(
            "duet__python_ask", None, POINTER, Task, POINTER, of=module), pointer)
        self.can_run, self.seconds, self.transfer_seconds, self.forget = _for_all(
            ask_all, self.workers, self.can_run, self.seconds, self.transfer_seconds)
        prefetch = self.prefetch
        self.prefetch = lambda *arguments: (prefetch(*arguments), self.forget())[0]


Times = library.structure("duet_times", start_s=DOUBLE, end_s=DOUBLE, predicted_s=DOUBLE)


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
    order = "deque"  # order of the workers' lists and the shared one, one of ORDERS
    may_decline = False  # struct duet_policy says when it has to be True
    pop = steal = init = plan = prologue = epilogue = None

    def push(self, view, tasks, by, now):
        """Places every task on a list."""
        raise NotImplementedError(f"policy {name_of(self)} has no push")


ORDERS = ("deque", "heap", "sorted", "nearest", "heap-nearest")
SLOT = ctypes.CFUNCTYPE
KINDS = {  # of the slots that are methods; the first argument is the policy's state, in C
    "init": SLOT(INT, POINTER, POINTER),
    "push": SLOT(None, POINTER, POINTER, POINTER, SIZE, INT, DOUBLE),
    "plan": SLOT(None, POINTER, POINTER, POINTER, SIZE, POINTER, DOUBLE),
    "pop": SLOT(POINTER, POINTER, POINTER, UINT, DOUBLE),
    "steal": SLOT(POINTER, POINTER, POINTER, UINT, UINT, DOUBLE),
    "prologue": SLOT(None, POINTER, POINTER, POINTER, UINT, DOUBLE),
    "epilogue": SLOT(None, POINTER, POINTER, POINTER, UINT, ctypes.POINTER(Times), DOUBLE),
}


def _tasks(pointer, count):
    return [Task(task) for task in (POINTER * count).from_address(pointer)]


CONVERTED = {  # arguments of slots as those of the methods, behind the view
    "push": lambda batch, count, by, now: (_tasks(batch, count), by, now),
    "plan": lambda tasks, count, ranks, now: (
        _tasks(tasks, count), list((DOUBLE * count).from_address(ranks)), now),
    "prologue": lambda task, worker, now: (Task(task), worker, now),
    "epilogue": lambda task, worker, times, now: (Task(task), worker, times.contents, now),
}
Slots = library.structure(
    "duet_policy", name=TEXT, description=TEXT, source=TEXT, order=INT, keeps_nested=BOOL,
    may_decline=BOOL, scores_hold=BOOL, state_size=SIZE, state_size_a_worker=SIZE,
    state_size_a_data=SIZE, state_size_a_place=SIZE, model=TEXT, parameters=POINTER,
    candidates=POINTER,
    init=KINDS["init"], fini=POINTER, push=KINDS["push"], plan=KINDS["plan"], pop=KINDS["pop"],
    steal=KINDS["steal"], victims=POINTER, victim=POINTER, prologue=KINDS["prologue"],
    revoke=POINTER, epilogue=KINDS["epilogue"])


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
        if policy.order not in ORDERS:
            raise Error(f"policy {name_of(policy)}: order is one of {', '.join(ORDERS)}, not "
                        f"{policy.order!r}")
        module = ctypes.PyDLL(path)
        look = functools.lru_cache(64)(View)  # by address: on duet's stack, at few places
        self._look = functools.partial(look, module=module)
        slots = self._slots = Slots.in_dll(module, "duet_policy")
        slots.name, slots.order = name_of(policy).encode(), ORDERS.index(policy.order)
        slots.may_decline = policy.may_decline
        for name, kind in KINDS.items():
            setattr(slots, name, self._slot(name, kind))
        if policy.pop is None:
            slots.pop = ctypes.cast(library.library().duet_pop_own_or_shared, KINDS["pop"])

    def _slot(self, name, kind):
        method, converted = getattr(self.policy, name), CONVERTED.get(name)

        def called(_, view, *arguments):
            try:
                if converted:
                    arguments = converted(*arguments)
                view = self._look(view)
                view.forget()
                result = method(view, *arguments)
                if name in ("pop", "steal") and not (result is None or isinstance(result, Task)):
                    raise TypeError(f"{name} returned {result!r}, which is no task")
                return 0 if name == "init" else result
            except BaseException as error:  # Ctrl-C among them; ctypes would only print it
                if self.runtime and not self.error:  # once: cancelling makes workers call again
                    library.cancel(self.runtime)
                self.error = self.error or error
                return -2 if name == "init" else None  # DUET_EINVAL
        return kind(called) if method else kind()


def policy_object(policy, path):
    """Writes a shared object for `--policy`: a copy of libduet-python-policy.so, with the policy
    behind its end, where processes of Python find it. Returns its path."""
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
            from cloudpickle import dumps
        except ImportError:
            raise Error(f"policy {name_of(policy)} is of an interactive session, where other "
                        "processes cannot find it: write it to a file, or install cloudpickle"
                        ) from None
    held = pickle.dumps({"main": main and os.path.abspath(main), "path": sys.path,
                         "module": type(policy).__module__, "policy": dumps(policy),
                         "source": source})  # so that studies see that it has changed
    shutil.copyfile(library.module_path("python-policy"), path)
    with open(path, "ab") as file:
        file.write(held + len(held).to_bytes(8, "little") + MARK)
    return path


def installed(path):
    """The Installed policy of a shared object, or None: it holds none in Python."""
    content = pathlib.Path(path).read_bytes() if path and os.path.isfile(path) else b""
    if not content.endswith(MARK):
        return None
    end = len(content) - len(MARK) - 8
    size = int.from_bytes(content[end:end + 8], "little")
    held = pickle.loads(content[end - size:end])
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


PROBLEM = ("n", "tile", "precision", "param")  # options that a task graph has answered


def objects(options):
    """The policies in Python among the values of the option `policy`, by name."""
    return {name_of(one): one for one in listed(options.get("policy")) if isinstance(one, Policy)}


def _written(policies, folder):
    """The policies as texts, and the names of those that are in Python by their text."""
    texts, names = [], {}
    for one in policies:
        text = one
        if isinstance(one, Policy):
            text = str(policy_object(one, pathlib.Path(folder, f"{name_of(one)}.so")))
            if text in names:
                raise Error(f"two policies are called {name_of(one)}: set `name` of one of them")
            names[text] = name_of(one)
        texts.append(str(text))
    return texts, names


def _problems(workload, options, folder):
    """Writes the task graphs of all combinations of the problem's options: those by file."""
    given = {name: listed(options[name]) for name in PROBLEM if options.get(name) is not None}
    made = {name: options[name] for name in ("platform", "cpus", "gpus", "starpu_models")
            if options.get(name) is not None and len(listed(options[name])) == 1}
    problems = {}
    for values in itertools.product(command.problems_of(workload), *given.values()):
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


def run_each(name, workload, options, folder):
    """(text, its rows) of each call of `duet simulate`, one a problem, or of the one call of `duet
    study`, whose graphs and policies are kept beside its file."""
    if workload is None:
        raise Error("a program finds policies in Python by itself, if it opens duet.Runtime: "
                    "write them with duet.policy_object, and give the path")
    if name == "study":
        folder = pathlib.Path(f"{os.fspath(options['out'])}.files")
        folder.mkdir(parents=True, exist_ok=True)
    texts, names = _written(listed(options["policy"]), folder)
    rest = {**{key: value for key, value in options.items() if key not in PROBLEM}, "policy": texts}
    problems = _problems(workload, options, folder)
    python_path = [str(command.HERE.parents[1]), *os.environ.get("PYTHONPATH", "").split(":")]
    environment = {"PYTHONPATH": ":".join(filter(None, python_path)),
                   "DUET_LIBRARY": library.library_path()}
    for paths in [list(problems)] if name == "study" else [[path] for path in problems]:
        together = paths[0] if len(paths) == 1 else "{%s}" % ",".join(paths)
        try:
            text, rows = command.call_runs(name, None, [sys.executable, "-m", "duet", together],
                                           rest, environment)
        except Error as error:
            path = re.escape(os.path.join(folder, ""))
            raise Error(re.sub(path + r"(\S+)\.so", r"\1", str(error)), error.status) from None
        for row in rows:
            path = paths[0] if len(paths) == 1 else next(
                (value for value in row.values() if value in problems), None)
            row.update(problems.get(path, {}), settings=None,
                       policy=names.get(row["policy"], row["policy"]))
        yield text, command.in_order(rows, [names.get(one, one) for one in texts])
