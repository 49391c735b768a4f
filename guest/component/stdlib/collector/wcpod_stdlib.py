"""Collects and compiles the standard library; runs in the CPython of componentize-py.

Only that CPython can compile for itself, and only it has its standard library at hand: at
``/python``, in every component that componentize-py builds. So this is the Python of a component
whose build is all that is wanted: it finds the additions of ``guest/component/stdlib`` at ``/1``,
and leaves ``lib/python3.14`` at ``/2``, where extra packages may lie already, and at ``/3`` what the
wheel has to say of this CPython.
"""

import json
import os
import sqlite3
import sys
import zlib
from importlib import _bootstrap_external as bootstrap

import wit_world

SOURCE, ADDITIONS, TARGET, PAPERS = "/python", "/1", "/2/lib/python3.14", "/3"
#: Where the files are in the sandbox.
LIBRARY = "/lib/python3.14"

#: What cannot work without processes, a terminal, a screen or code that was not built for WASI, and what stands in
#: for code that was.
LEFT_OUT = frozenset(
    """
    __hello__.py __phello__ __pycache__ _aix_support.py _android_support.py _apple_support.py
    _ios_support.py _osx_support.py _pyio.py antigravity.py build-details.json
    config-3.14-wasm32-wasi ctypes curses ensurepip idlelib multiprocessing nturl2path.py pty.py pydoc_data
    site-packages ssl.py tkinter turtle.py turtledemo venv webbrowser.py
    """.split()
)


class WitWorld(wit_world.WitWorld):
    """The export that a component has to have."""

    def nothing(self) -> None:
        """Does nothing."""


def collect(folder: str = "") -> None:
    """Copies one folder of the library, with the additions to it."""
    os.makedirs(f"{TARGET}{folder}", exist_ok=True)
    for name in sorted(os.listdir(SOURCE + folder)):
        path = f"{folder}/{name}"
        if name == "__pycache__" or (not folder and name in LEFT_OUT):
            continue
        if os.path.isdir(SOURCE + path):
            collect(path)
            continue
        content = _read(SOURCE + path)
        if os.path.exists(f"{ADDITIONS}/replace{path}"):
            content = _read(f"{ADDITIONS}/replace{path}")
        elif os.path.exists(f"{ADDITIONS}/append{path}"):
            content += b"\n\n" + _read(f"{ADDITIONS}/append{path}")
        with open(TARGET + path, "wb") as file:
            file.write(content)


def compile_all(folder: str = "") -> None:
    """Compiles what was collected; the result is taken as it is, without a look at the source."""
    for name in sorted(os.listdir(TARGET + folder)):
        path = f"{folder}/{name}"
        if os.path.isdir(TARGET + path):
            if name != "__pycache__":
                compile_all(path)
        elif name.endswith(".py"):
            _compile(folder, name)


def _compile(folder: str, name: str) -> None:
    path = f"{folder}/{name}"
    try:
        code = compile(_read(TARGET + path), LIBRARY + path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # A template or a test's sample, which nobody imports.
        return
    os.makedirs(f"{TARGET}{folder}/__pycache__", exist_ok=True)
    with open(f"{TARGET}{folder}/__pycache__/{name.removesuffix('.py')}.cpython-314.pyc", "wb") as file:
        file.write(vars(bootstrap)["_code_to_hash_pyc"](code, b"\0" * 8, False))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_papers() -> None:
    """CPython's licence, and the versions of what is linked into it."""
    with open(f"{PAPERS}/cpython.txt", "wb") as file:
        file.write(_read(f"{SOURCE}/LICENSE.txt"))
    versions = {
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
    }
    with open(f"{PAPERS}/versions.json", "w") as file:
        json.dump(versions, file)


collect()
compile_all()
write_papers()
