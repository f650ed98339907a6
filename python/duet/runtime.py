# SPDX-License-Identifier: Apache-2.0
"""Runs in this process: a runtime of libduet, and its tasks."""

import ctypes
import os
import shutil
import tempfile

from duet import library, policy
from duet.command import Error
from duet.library import INT, MESSAGE_BYTES, POINTER, TEXT, check


class Runtime:
    """An open runtime. Settings are those of the environment (docs/applications.md) and keyword
    arguments of the same names: Runtime(simulate="idgraf", policy="heft", cpus=4)."""

    def __init__(self, **settings):
        chosen = settings.get("policy") or os.environ.get("DUET_POLICY")
        with tempfile.TemporaryDirectory() as folder:  # libraries stay open without their files
            if isinstance(chosen, policy.Policy):
                settings["policy"] = shutil.copy(library.module_path("python-policy"), folder)
                self._policy = policy.Installed(chosen, settings["policy"])
            else:
                self._policy = policy.installed(chosen)
            try:
                self._pointer = library.open_runtime(**settings)
            except Error:
                self._raise()
                raise
        self._graphs = []
        if self._policy:
            self._policy.runtime = self._pointer

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    def submit_graph(self, path):
        """Submits the tasks of a graph's file in duet's own format."""
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

    def _raise(self):
        """Raises what a method of a policy, or a task, has raised."""
        error = self._policy and self._policy.error
        if error:
            raise Error(f"policy {policy.name_of(self._policy.policy)}: "
                        f"{type(error).__name__}: {error}") from error

    def wait(self):
        """Waits for all tasks."""
        status = library.function("duet_wait", INT, POINTER)(self._pointer)
        self._raise()
        check(self._pointer, status)

    def close(self):
        """Waits for all tasks, and ends the runtime; a second call does nothing."""
        if not self._pointer:
            return
        try:
            self.wait()
        finally:
            pointer, self._pointer = self._pointer, None
            library.function("duet_close", INT, POINTER)(pointer)
            for free in self._graphs:
                free()
