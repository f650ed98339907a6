# SPDX-License-Identifier: Apache-2.0
"""libduet by ctypes: what simulations and runs in this process share."""

import ctypes
import ctypes.util
import functools
import os
import pathlib

from duet.command import Error, command_path, first_file, option_text

POINTER, INT, DOUBLE, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_size_t
TEXT, BOOL, U64, UINT = ctypes.c_char_p, ctypes.c_bool, ctypes.c_uint64, ctypes.c_uint
MESSAGE_BYTES = 512  # DUET_MESSAGE_MAX of duet/error.h


def library_path():
    """libduet.so: the variable DUET_LIBRARY, else where the command is, else the system's."""
    if os.environ.get("DUET_LIBRARY"):
        return os.environ["DUET_LIBRARY"]
    folder = pathlib.Path(command_path()).resolve().parent
    places = [folder, *sorted(folder.parent.glob("lib*")), *sorted(folder.parent.glob("lib/*-gnu"))]
    found = first_file(place / name for place in places for name in ("libduet.so", "libduet.so.0"))
    found = found or ctypes.util.find_library("duet")
    if not found:
        raise Error("there is no libduet.so beside the command duet: put its path into the "
                    "variable DUET_LIBRARY")
    return found


def module_path(name):
    """A shared object of duet's that is installed beside libduet, or in modules/ of a build."""
    library = pathlib.Path(library_path()).resolve()
    found = first_file(library.parent / folder / f"libduet-{name}.so"
                       for folder in ("duet", "modules"))
    if not found:
        raise Error(f"there is no libduet-{name}.so beside {library}: install duet again")
    return found


@functools.lru_cache(maxsize=None)
def library(waits=False):
    """libduet. Its functions keep Python's lock; with `waits`, they release it, so that kernels in
    Python can run."""
    try:
        return (ctypes.CDLL if waits else ctypes.PyDLL)(library_path(), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Error(f"cannot open libduet: {error}") from None


@functools.lru_cache(maxsize=None)
def function(name, result, *arguments, of=None):
    """A function of libduet with its types."""
    found = getattr(of or library(), name)
    found.restype, found.argtypes = result, arguments
    return found


def structure(name, /, **fields):
    """A class of ctypes for a struct of libduet, with types by field."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


def cancel(runtime):
    """Cancels the tasks that have not begun."""
    function("duet_cancel", None, POINTER)(runtime)


def open_runtime(**settings):
    """Opens a runtime with the settings of the environment, and those given: simulate="idgraf"."""
    given = {name: option_text(value) for name, value in settings.items()
             if value not in (None, False)}
    runtime, message = POINTER(), ctypes.create_string_buffer(MESSAGE_BYTES)
    # duet_config_arguments refuses settings that there are not; variables would not be read
    config = (SIZE * 4)(ctypes.sizeof(SIZE) * 4)  # struct duet_config, as short as it may be
    words = [b"python", *(f"--duet-{name.replace('_', '-')}={text}".encode()
                          for name, text in given.items()), None]
    status = function("duet_config_arguments", INT, POINTER, POINTER, POINTER, POINTER)(
        config, ctypes.byref(INT(len(words) - 1)), (TEXT * len(words))(*words), message)
    variables = {"DUET_" + name.upper(): given.get(name) for name in settings}
    before = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        os.environ.update({name: text for name, text in variables.items() if text is not None})
        status = status or function("duet_open", INT, POINTER, POINTER, POINTER)(
            ctypes.byref(runtime), None, message)
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)
    check(status, message.value.replace(b"--duet-", b""))
    return runtime.value


def check(status, message=None, runtime=None):
    """Raises Error for a negative status, with the message given or the runtime's."""
    if status < 0:
        if message is None:
            message = (function("duet_last_message", TEXT, POINTER)(runtime)
                       or function("duet_strerror", TEXT, INT)(status))
        raise Error(message.decode(errors="replace"), status)
