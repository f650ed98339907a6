# SPDX-License-Identifier: Apache-2.0
"""Runs in this process: a runtime of libduet, its data and its tasks."""

import ctypes
import os
import shutil
import tempfile
import threading

from duet import library, policy
from duet.command import Error
from duet.library import BOOL, DOUBLE, INT, MESSAGE_BYTES, POINTER, SIZE, TEXT, U64, check

READ, WRITE, COMMUTE_MODE = 1, 2, 7  # enum duet_mode
ETASK = -10  # DUET_ETASK
KERNEL_BYTES = 31  # most bytes of a kernel's name


class Buffer(ctypes.Structure):
    """struct duet_buffer."""

    _fields_ = [("data", POINTER), ("rows", SIZE), ("cols", SIZE), ("ld", SIZE),
                ("element_bytes", SIZE), ("planes", SIZE), ("plane", SIZE)]


class Call(ctypes.Structure):
    """struct duet_call."""

    _fields_ = [("runtime", POINTER), ("args", ctypes.POINTER(U64)),
                ("buffers", ctypes.POINTER(Buffer)), ("buffer_count", SIZE), ("stream", POINTER),
                ("status", POINTER), ("message", POINTER)]


KERNEL = ctypes.CFUNCTYPE(INT, ctypes.POINTER(Call))


class Implementation(ctypes.Structure):
    """struct duet_implementation."""

    _fields_ = [("arch", TEXT), ("run", KERNEL)]


class Codelet(ctypes.Structure):
    """struct duet_codelet_desc."""

    _fields_ = [("name", TEXT), ("implementations", ctypes.POINTER(Implementation)),
                ("count", SIZE), ("flops", POINTER), ("cost", POINTER), ("expand", POINTER),
                ("waits", BOOL)]


class AccessOf(ctypes.Structure):
    """struct duet_access."""

    _fields_ = [("handle", POINTER), ("mode", INT)]


class TaskOf(ctypes.Structure):
    """struct duet_task_desc."""

    _fields_ = [("codelet", POINTER), ("accesses", ctypes.POINTER(AccessOf)),
                ("access_count", SIZE), ("args", POINTER), ("args_bytes", SIZE),
                ("priority", INT), ("where", U64), ("complexity", DOUBLE), ("extra", POINTER)]


class Data:
    """An array that a runtime knows: what an access is to."""

    def __init__(self, array):
        view = memoryview(array)
        if view.readonly:
            raise Error("a read-only array cannot be data of tasks: give a copy")
        self.array = array
        self.bytes, self.format, self.shape = view.itemsize, view.format, view.shape
        strides = view.strides
        self.transposed = len(self.shape) == 2 and strides[0] == self.bytes != strides[1]
        if len(self.shape) == 2 and (view.f_contiguous or not view.c_contiguous):
            inner, outer = (0, 1) if self.transposed else (1, 0)
            if strides[inner] != self.bytes or strides[outer] % self.bytes or strides[outer] <= 0:
                raise Error("an array of two dimensions needs elements that are contiguous in one "
                            "of them: give a copy")
            self.rows, self.cols = self.shape[inner], self.shape[outer]
            self.ld = max(strides[outer] // self.bytes, self.rows)
        elif not view.c_contiguous:
            raise Error("an array of one, or of more than two dimensions, has to be contiguous: "
                        "give a copy")
        elif len(self.shape) == 2:
            self.cols, self.rows = self.shape
            self.ld = self.rows
        else:
            self.rows, self.cols = view.nbytes // self.bytes, 1
            self.ld = self.rows
        self.numpy = hasattr(array, "__array_interface__")
        self.address = (array.__array_interface__["data"][0] if self.numpy
                        else ctypes.addressof(ctypes.c_char.from_buffer(array)))

    def seen(self, buffer, writes):
        """The array as a kernel sees it, in the memory of its worker."""
        size = buffer.element_bytes * (buffer.ld * (buffer.cols - 1) + buffer.rows)
        memory = (ctypes.c_char * size).from_address(buffer.data)
        if not self.numpy:
            view = memoryview(memory).cast("B").cast(self.format, self.shape)
            return view if writes else view.toreadonly()
        strides = None
        if len(self.shape) == 2:
            strides = (buffer.ld * self.bytes, self.bytes)
            strides = strides[::-1] if self.transposed else strides
        array = type(self.array)(self.shape, self.array.dtype, memory, 0, strides)
        array.flags.writeable = writes
        return array


class Access:
    """An access of a task to data, in a mode of duet/handles.h."""

    def __init__(self, data, mode):
        self.data, self.mode = data, mode


def R(data):
    """The task reads the data."""
    return Access(data, READ)


def W(data):
    """The task writes the data, whose old contents it does not need."""
    return Access(data, WRITE)


def RW(data):
    """The task reads and writes the data."""
    return Access(data, READ | WRITE)


def COMMUTE(data):
    """As RW, but tasks with this mode may run in any order, one at a time."""
    return Access(data, COMMUTE_MODE)


class Runtime:
    """An open runtime. Settings are those of the environment (docs/applications.md) and keyword
    arguments of the same names: Runtime(simulate="idgraf", policy="heft", cpus=4)."""

    def __init__(self, **settings):
        self._pointer = None
        self._graphs, self._data, self._codelets, self._tasks = [], {}, {}, {}
        self._error = None  # what a task has raised
        self._count = 0
        self._kernel = KERNEL(self._run)
        self._lock = threading.Lock()  # held while a call waits on another thread
        self._simulated = bool(settings.get("simulate") or os.environ.get("DUET_SIMULATE"))
        chosen = settings.get("policy") or os.environ.get("DUET_POLICY")
        with tempfile.TemporaryDirectory() as folder:  # libraries stay open without their files
            if isinstance(chosen, policy.Policy):
                settings["policy"] = shutil.copy(library.module_path("python-policy"), folder)
                self._policy = policy.Installed(chosen, settings["policy"])
            else:
                self._policy = policy.installed(chosen)
            if self._policy and not self._simulated:
                raise Error("policies in Python are for simulations: workers would wait for each "
                            "other in them")
            try:
                self._pointer = library.open_runtime(**settings)
            except Error:
                self._raise()
                raise
        if self._policy:
            self._policy.runtime = self._pointer

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is not None and self._pointer:
            library.function("duet_cancel", None, POINTER)(self._pointer)
            self._error = self._error or value
            try:
                self.close()
            except Error:
                pass  # what has been raised in the block is why
        else:
            self.close()

    def _call(self, name, *values, types=()):
        """Calls a function that may wait: kernels in Python run meanwhile. In simulations none do,
        and policies are called sooner with the lock."""
        of = library.library() if self._policy else library.waiting()
        return library.function(name, INT, POINTER, *types, of=of)(self._pointer, *values)

    def _interruptible(self, name, *values, types=()):
        """Calls a function on another thread: Python handles signals on this one. What a handler
        raises, as for Ctrl-C, cancels the tasks that have not begun."""
        result = []

        def call():
            with self._lock:
                if self._pointer:
                    result.append(self._call(name, *values, types=types))
        if self._simulated:  # which is for one thread
            return self._call(name, *values, types=types)
        thread = threading.Thread(target=call, daemon=True)
        try:
            thread.start()
            while thread.is_alive():  # a signal that comes just before a wait does not end it
                thread.join(0.1)
        except BaseException:
            library.function("duet_cancel", None, POINTER)(self._pointer)
            raise
        return result[0]

    def _raise(self):
        """Raises what a method of a policy, or a task, has raised."""
        error = self._policy and self._policy.error
        if error:
            raise Error(f"policy {policy.name_of(self._policy.policy)}: "
                        f"{type(error).__name__}: {error}") from error

    def array(self, array):
        """Makes an array (of NumPy, or what has a writable buffer) data of tasks. It may be touched
        by others before the first task that uses it, after close(), and after fetch() until the
        next task that does."""
        data = Data(array)
        handle = POINTER()
        status = self._call("duet_register_matrix", data.address, data.rows, data.cols, data.ld,
                            data.bytes, ctypes.byref(handle),
                            types=(POINTER, SIZE, SIZE, SIZE, SIZE, POINTER))
        check(self._pointer, status)
        self._data[data] = handle.value
        return data

    def fetch(self, data):
        """Waits for the tasks that write the data, and returns its array with what they left."""
        status = self._interruptible("duet_acquire", self._data[data], READ, types=(POINTER, INT))
        self._raise_task()
        check(self._pointer, status)
        library.function("duet_release", None, POINTER, POINTER, of=library.waiting())(
            self._pointer, self._data[data])
        return data.array

    def task(self, function, *arguments, priority=0, name=None):
        """Submits a call of the function. Accesses among its arguments, duet.R(a) and so on, become
        arrays, in other arguments' order; a function of ctypes gets their addresses. It runs after
        the tasks submitted before that conflict with it, and returns nothing."""
        accesses = [one for one in arguments if isinstance(one, Access)]
        for one in accesses:
            if one.data not in self._data:
                raise Error("an access is to data of this runtime: duet.R(runtime.array(a))")
        listed = (AccessOf * len(accesses))(*[(self._data[one.data], one.mode)
                                              for one in accesses])
        self._count += 1
        number = U64(self._count)
        self._tasks[number.value] = function, arguments
        desc = TaskOf(self._codelet(name or getattr(function, "__name__", "task")), listed,
                      len(accesses), ctypes.addressof(number), 8, priority, 0, 0, None)
        status = self._call("duet_submit", ctypes.byref(desc), types=(POINTER,))
        check(self._pointer, status)

    def _codelet(self, name):
        name = name.encode()[:KERNEL_BYTES].decode(errors="ignore").encode()
        if name not in self._codelets:
            run = (Implementation * 1)((b"cpu", self._kernel))
            desc, out = Codelet(name, run, 1), POINTER()
            check(self._pointer, self._call("duet_register_codelet", ctypes.byref(desc),
                                            ctypes.byref(out), types=(POINTER, POINTER)))
            self._codelets[name] = out.value
        return self._codelets[name]

    def _run(self, pointer):
        """Every task's kernel, on the thread of its worker."""
        call = pointer.contents
        try:
            function, arguments = self._tasks[call.args[0]]
            buffers = iter(call.buffers[:call.buffer_count])
            # ctypes has no public name for the class of its functions
            foreign = hasattr(function, "argtypes")
            values = []
            for one in arguments:
                if isinstance(one, Access):
                    buffer = next(buffers)
                    one = (POINTER(buffer.data) if foreign
                           else one.data.seen(buffer, bool(one.mode & WRITE)))
                values.append(one)
            function(*values)
            return 0
        except BaseException as error:  # ctypes would only print it
            if self._error is None:
                self._error = error
            text = f"{type(error).__name__}: {error}".encode(errors="replace")
            if call.message:
                ctypes.memmove(call.message, text[:MESSAGE_BYTES - 1] + b"\0",
                               min(len(text), MESSAGE_BYTES - 1) + 1)
            return ETASK

    def _raise_task(self):
        error, self._error = self._error, None
        if error is not None:
            raise Error(f"a task has raised {type(error).__name__}: {error}") from error

    def submit_graph(self, path):
        """Submits the tasks of a graph's file in duet's own format, which compute nothing."""
        module = ctypes.PyDLL(library.module_path("python"))
        graph, message = POINTER(), ctypes.create_string_buffer(MESSAGE_BYTES)
        status = library.function("duet__python_submit", INT, POINTER, TEXT, POINTER, POINTER,
                                  of=module)(self._pointer, os.fsencode(path),
                                             ctypes.byref(graph), message)
        free = library.function("duet__python_free", None, POINTER, of=module)
        self._graphs.append(lambda: free(graph))
        self._raise()
        if status:
            raise Error(message.value.decode(errors="replace"), status)

    def wait(self):
        """Waits for all tasks. Raises what one of them has raised."""
        status = self._interruptible("duet_wait")
        self._raise()
        self._raise_task()
        check(self._pointer, status)
        self._tasks.clear()

    def close(self):
        """Waits for all tasks, brings data back to its arrays, and ends the runtime; a second call
        does nothing."""
        if not self._pointer:
            return
        try:
            self.wait()
            for handle in self._data.values():
                check(self._pointer, self._call("duet_unregister", handle, types=(POINTER,)))
        finally:
            with self._lock:  # a call that a signal has left may still be on its thread
                self._call("duet_close")
                self._pointer = None
            self._data.clear()
            for free in self._graphs:
                free()
