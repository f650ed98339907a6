# SPDX-License-Identifier: Apache-2.0
"""Runs in this process: a runtime of libduet, its data and its tasks."""

import atexit
import collections
import contextlib
import ctypes
import functools
import os
import shutil
import sys
import tempfile
import threading
import traceback

from duet import library, policy
from duet.command import Error
from duet.graph import kernel_name
from duet.library import BOOL, DOUBLE, INT, MESSAGE_BYTES, POINTER, SIZE, TEXT, U64, check

READ, WRITE = 1, 2  # enum duet_mode
ETASK = -10  # DUET_ETASK


Buffer = library.structure("duet_buffer", data=POINTER, rows=SIZE, cols=SIZE, ld=SIZE,
                           element_bytes=SIZE, planes=SIZE, plane=SIZE)
Call = library.structure("duet_call", runtime=POINTER, args=ctypes.POINTER(U64),
                         buffers=ctypes.POINTER(Buffer), buffer_count=SIZE, stream=POINTER,
                         status=POINTER, message=POINTER)
KERNEL = ctypes.CFUNCTYPE(INT, ctypes.POINTER(Call))
Implementation = library.structure("duet_implementation", arch=TEXT, run=KERNEL)
Codelet = library.structure("duet_codelet_desc", name=TEXT,
                            implementations=ctypes.POINTER(Implementation), count=SIZE,
                            flops=POINTER, cost=POINTER, expand=POINTER, waits=BOOL,
                            capturable=BOOL)
AccessOf = library.structure("duet_access", handle=POINTER, mode=INT)
TaskOf = library.structure("duet_task_desc", codelet=POINTER, accesses=ctypes.POINTER(AccessOf),
                           access_count=SIZE, args=POINTER, args_bytes=SIZE, priority=INT,
                           where=U64, complexity=DOUBLE, extra=POINTER)
ARGUMENTS = {  # of functions of libduet, behind the runtime
    "duet_acquire": (POINTER, INT),
    "duet_register_codelet": (POINTER, POINTER),
    "duet_register_matrix": (POINTER, SIZE, SIZE, SIZE, SIZE, POINTER),
    "duet_submit": (POINTER,),
    "duet_unregister": (POINTER,),
}


def told(error):
    """The text of an exception, with the last place outside of this package that it came by."""
    places = [f" ({os.path.basename(one.filename)}:{one.lineno}, in {one.name})"
              for one in traceback.extract_tb(error.__traceback__)
              if os.path.dirname(one.filename) != os.path.dirname(__file__)]
    return f"{type(error).__name__}: {error}{''.join(places[-1:])}"


class Data:
    """An array that a runtime knows: what an access is to."""

    def __init__(self, array):
        view = memoryview(array)
        if view.readonly or "O" in view.format:
            raise Error("an array that is read-only, or of objects, cannot be data of tasks: give "
                        "a copy, of numbers")
        self.array = array
        self.bytes, self.format, self.shape = view.itemsize, view.format, view.shape
        strides = view.strides
        self.transposed = len(self.shape) == 2 and strides[0] == self.bytes != strides[1]
        if len(self.shape) == 2:
            inner, outer = (0, 1) if self.transposed else (1, 0)
            fits = (strides[inner] == self.bytes and strides[outer] % self.bytes == 0
                    and strides[outer] > 0)
            self.rows, self.cols = self.shape[inner], self.shape[outer]
            self.ld = max(strides[outer] // self.bytes, self.rows)
        else:
            fits = view.c_contiguous
            self.rows = self.ld = view.nbytes // self.bytes
            self.cols = 1
        if not fits:
            raise Error("an array has to be contiguous, one of two dimensions in one of them: give "
                        "a copy")
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


Access = collections.namedtuple("Access", "data mode")  # of a task, in a mode of duet/handles.h
R = functools.partial(Access, mode=1)  # the task reads the data
W = functools.partial(Access, mode=2)  # writes it, and does not need its old contents
RW = functools.partial(Access, mode=3)
COMMUTE = functools.partial(Access, mode=7)  # as RW, in any order, one task at a time


_open = set()  # runtimes that are not closed: libduet calls their kernels


@atexit.register
def _tell():
    if _open:
        print("duet: a Runtime was not closed, so that tasks may not have run, and errors are not "
              "told: use `with duet.Runtime(...)`, or close()", file=sys.stderr)


class Runtime:
    """An open runtime. Settings are those of the environment (docs/applications.md) and keyword
    arguments of the same names: Runtime(simulate="idgraf", policy="heft", cpus=4)."""

    def __init__(self, **settings):
        self._pointer = None
        self._data, self._codelets, self._tasks = {}, {}, {}
        self._graphs = contextlib.ExitStack()  # frees them
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
        _open.add(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is not None and self._pointer:
            library.cancel(self._pointer)
            self._error = self._error or value
        # what has been raised in the block is why
        with contextlib.suppress(*[] if kind is None else [Error]):
            self.close()

    def _call(self, name, *values):
        """Calls a function that may wait: kernels in Python run meanwhile. In simulations none do,
        and policies are called sooner with the lock."""
        return library.function(name, INT, POINTER, *ARGUMENTS.get(name, ()),
                                of=library.library(waits=not self._policy))(self._pointer, *values)

    def _checked(self, name, *values):
        check(self._call(name, *values), runtime=self._pointer)

    def _wait(self, name, *values):
        """Calls a function on another thread: Python handles signals on this one. What a handler
        raises, as for Ctrl-C, cancels the tasks that have not begun."""
        result = []

        def call():
            with self._lock:
                if self._pointer:
                    result.append(self._call(name, *values))
        if self._simulated:  # which is for one thread
            call()
        else:
            thread = threading.Thread(target=call, daemon=True)
            try:
                thread.start()
                while thread.is_alive():  # a signal that comes just before a wait does not end it
                    thread.join(0.1)
            except BaseException:
                library.cancel(self._pointer)
                raise
        self._raise()
        check(result[0], runtime=self._pointer)

    def _raise(self):
        """Raises what a task, or a method of a policy, has raised."""
        error, self._error, what = self._error, None, "a task has raised"
        if error is None and self._policy:
            error, what = self._policy.error, f"policy {policy.name_of(self._policy.policy)}:"
        if error is not None:
            raise Error(f"{what} {told(error)}") from error

    def array(self, array):
        """Makes an array (of NumPy, or what has a writable buffer) data of tasks. It may be touched
        by others before the first task that uses it, after close(), and after fetch() until the
        next task that does."""
        data = Data(array)
        handle = POINTER()
        self._checked("duet_register_matrix", data.address, data.rows, data.cols, data.ld,
                      data.bytes, ctypes.byref(handle))
        self._data[data] = handle.value
        return data

    def fetch(self, data):
        """Waits for the tasks that write the data, and returns its array with what they left."""
        handle = self._handle(data)
        self._wait("duet_acquire", handle, READ)
        library.function("duet_release", None, POINTER, POINTER, of=library.library(waits=True))(
            self._pointer, handle)
        return data.array

    def _handle(self, data):
        handle = self._data.get(data) if isinstance(data, Data) else None
        if handle is None:
            raise Error("this takes data of this runtime, while that is open: "
                        "a = runtime.array(x), then duet.R(a), or runtime.fetch(a)")
        return handle

    def task(self, function, *arguments, priority=0, name=None):
        """Submits a call of the function. Accesses among its arguments, duet.R(a) and so on, become
        arrays, in other arguments' order; a function of ctypes gets their addresses. It runs after
        the tasks submitted before that conflict with it, and returns nothing."""
        accesses = [one for one in arguments if isinstance(one, Access)]
        if any(isinstance(one, Data) for one in arguments):
            raise Error("a task gets data by a mode: duet.R(a), duet.W(a), duet.RW(a) or "
                        "duet.COMMUTE(a)")
        listed = (AccessOf * len(accesses))(*[(self._handle(one.data), one.mode)
                                              for one in accesses])
        self._count += 1
        number = U64(self._count)
        self._tasks[number.value] = function, arguments
        desc = TaskOf(self._codelet(name or getattr(function, "__name__", "task")), listed,
                      len(accesses), ctypes.addressof(number), 8, priority, 0, 0, None)
        self._checked("duet_submit", ctypes.byref(desc))

    def _codelet(self, name):
        name = kernel_name(name).encode()
        if name not in self._codelets:
            run = (Implementation * 1)((b"cpu", self._kernel))
            desc, out = Codelet(name, run, 1), POINTER()
            self._checked("duet_register_codelet", ctypes.byref(desc), ctypes.byref(out))
            self._codelets[name] = out.value
        return self._codelets[name]

    def _run(self, pointer):
        """Every task's kernel, on the thread of its worker."""
        call = pointer.contents
        try:
            function, arguments = self._tasks[call.args[0]]
            buffers = iter(call.buffers[:call.buffer_count])
            foreign = hasattr(function, "argtypes")  # of ctypes, whose class has no public name
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
            text = told(error).encode(errors="replace")[:MESSAGE_BYTES - 1] + b"\0"
            if call.message:
                ctypes.memmove(call.message, text, len(text))
            return ETASK

    def submit_graph(self, path):
        """Submits the tasks of a graph's file in duet's own format, which compute nothing."""
        module = ctypes.PyDLL(library.module_path("python"))
        graph, message = POINTER(), ctypes.create_string_buffer(MESSAGE_BYTES)
        status = library.function("duet__python_submit", INT, POINTER, TEXT, POINTER, POINTER,
                                  of=module)(self._pointer, os.fsencode(path),
                                             ctypes.byref(graph), message)
        free = library.function("duet__python_free", None, POINTER, of=module)
        self._graphs.callback(free, graph)
        self._raise()
        check(status, message.value)

    def wait(self):
        """Waits for all tasks. Raises what one of them has raised."""
        self._wait("duet_wait")
        self._tasks.clear()

    def close(self):
        """Waits for all tasks, brings data back to its arrays, and ends the runtime; a second call
        does nothing."""
        if not self._pointer:
            return
        try:
            self.wait()
            for handle in self._data.values():
                self._checked("duet_unregister", handle)
        finally:
            with self._lock:  # a call that a signal has left may still be on its thread
                self._call("duet_close")
                self._pointer = None
            _open.discard(self)
            self._data.clear()
            self._graphs.close()
