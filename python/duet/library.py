# SPDX-License-Identifier: Apache-2.0
"""libduet by ctypes: what simulations and runs in this process share."""

import contextlib
import ctypes
import ctypes.util
import os
import pathlib

from duet.command import Error, command_path, option_text

POINTER, INT, DOUBLE, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_size_t
TEXT, BOOL, U64 = ctypes.c_char_p, ctypes.c_bool, ctypes.c_uint64
MESSAGE_BYTES = 512  # DUET_MESSAGE_MAX of duet/error.h

_opened = {}


def library_path():
    """libduet.so: the variable DUET_LIBRARY, else where the command is, else the system's."""
    if os.environ.get("DUET_LIBRARY"):
        return os.environ["DUET_LIBRARY"]
    folder = pathlib.Path(command_path()).resolve().parent
    places = [folder, *sorted(folder.parent.glob("lib*")), *sorted(folder.parent.glob("lib/*-gnu"))]
    for place in places:
        for path in (place / "libduet.so", place / "libduet.so.0"):
            if path.is_file():
                return str(path)
    found = ctypes.util.find_library("duet")
    if not found:
        raise Error("there is no libduet.so beside the command duet: put its path into the "
                    "variable DUET_LIBRARY")
    return found


def module_path(name):
    """A shared object of duet's that is installed beside libduet, or in modules/ of a build."""
    library = pathlib.Path(library_path()).resolve()
    for folder in ("duet", "modules"):
        path = library.parent / folder / f"libduet-{name}.so"
        if path.is_file():
            return str(path)
    raise Error(f"there is no libduet-{name}.so beside {library}: install duet again")


def library():
    """libduet, whose functions keep Python's lock; of those that wait see waiting()."""
    if "library" not in _opened:
        path = library_path()
        try:
            _opened["library"] = ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL)
            _opened["waiting"] = ctypes.CDLL(path)
        except OSError as error:
            raise Error(f"cannot open libduet: {error}") from None
    return _opened["library"]


def waiting():
    """libduet, whose functions release Python's lock, so that kernels in Python can run."""
    library()
    return _opened["waiting"]


def function(name, result, *arguments, of=None):
    """A function of libduet with its types."""
    found = getattr(of or library(), name)
    found.restype, found.argtypes = result, arguments
    return found


@contextlib.contextmanager
def environment(variables):
    """Sets variables for a while; None removes one."""
    before = {name: os.environ.get(name) for name in variables}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    put(variables)
    try:
        yield
    finally:
        put(before)


def _check_settings(settings, message):
    """Refuses settings that there are not, which variables of the environment would not do."""
    config = (SIZE * 4)(ctypes.sizeof(SIZE) * 4)  # struct duet_config, as short as it may be
    words = [b"python", *(f"--duet-{name.replace('_', '-')}={option_text(value)}".encode()
                          for name, value in settings.items() if value not in (None, False))]
    argv = (TEXT * (len(words) + 1))(*words, None)
    count = INT(len(words))
    status = function("duet_config_arguments", INT, POINTER, POINTER, POINTER, POINTER)(
        config, ctypes.byref(count), argv, message)
    if status:
        raise Error(message.value.decode(errors="replace").replace("--duet-", ""), status)


def open_runtime(**settings):
    """Opens a runtime with the settings of the environment, and those given: simulate="idgraf"."""
    variables = {"DUET_" + name.upper(): None if value in (None, False) else option_text(value)
                 for name, value in settings.items()}
    runtime, message = POINTER(), ctypes.create_string_buffer(MESSAGE_BYTES)
    _check_settings(settings, message)
    with environment(variables):
        status = function("duet_open", INT, POINTER, POINTER, POINTER)(
            ctypes.byref(runtime), None, message)
    if status:
        raise Error(message.value.decode(errors="replace"), status)
    return runtime.value


def check(runtime, status):
    """Raises Error with the runtime's message for a negative status."""
    if status < 0:
        text = function("duet_last_message", TEXT, POINTER)(runtime)
        if not text:
            text = function("duet_strerror", TEXT, INT)(status)
        raise Error(text.decode(errors="replace"), status)
