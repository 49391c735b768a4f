"""Moves the interpreter from the build machine to the sandbox.

While the component is built, the standard library lies at ``/python`` and this package at ``/0``.
In the sandbox the library is at ``/lib/python3.14`` and this package nowhere: every path that the
interpreter remembers is changed to what will be true there.
"""

import _imp
import gc
import os
import sys
from importlib import _bootstrap_external as bootstrap
from types import CodeType, FunctionType, ModuleType
from typing import Any

#: What the file names of this package's code start with.
OWN = "<wcpod>/"

LIBRARY = "/lib/python3.14"
#: Modification time of everything in the library, as the file system reports it.
LIBRARY_MODIFIED = 315532800.0

_OWN_MODULES = ("wcpod_guest", "wit_world", "componentize_py")
_kept: list[ModuleType] = []


def move() -> None:
    """To be called last, after everything was imported."""
    for name, module in list(sys.modules.items()):
        if module is None:  # `__main__` of a run that has ended
            continue
        _move_module(module)
        if name.partition(".")[0].startswith(_OWN_MODULES):
            # Their functions live on with their namespaces; nobody else needs their names.
            _kept.append(module)
            if name.startswith("wcpod_guest"):
                del sys.modules[name]
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code: CodeType = function.__code__
            _imp._fix_co_filename(code, _moved(code.co_filename))  # type: ignore[attr-defined]
    _move_paths()


def _moved(path: str) -> str:
    for start, target in (
        ("/python/lib/python3.14/", LIBRARY + "/"),
        ("/python/", LIBRARY + "/"),
        ("/0/", OWN),
        ("/world/", OWN),
        ("/bundled/", OWN),
    ):
        if path.startswith(start):
            return target + path.removeprefix(start)
    return path


def _move_module(module: ModuleType) -> None:
    namespace = vars(module)
    for attribute in ("__file__", "__cached__"):
        if isinstance(namespace.get(attribute), str):
            namespace[attribute] = _moved(namespace[attribute])
    if "__path__" in namespace:
        namespace["__path__"] = [_moved(path) for path in namespace["__path__"]]
    spec = namespace.get("__spec__")
    if spec is not None:
        if spec.origin:
            spec.origin = _moved(spec.origin)
        if spec.cached:
            spec.cached = _moved(spec.cached)
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = [_moved(path) for path in spec.submodule_search_locations]
        loader = spec.loader
        if isinstance(getattr(loader, "path", None), str):
            loader.path = _moved(loader.path)
        state = spec.loader_state
        if getattr(state, "filename", None):
            state.filename = _moved(state.filename)


def _move_paths() -> None:
    names = set(os.listdir("/python"))
    sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = "/"
    sys._stdlib_dir = LIBRARY  # type: ignore[attr-defined]
    sys.path[:] = [LIBRARY, f"{LIBRARY}/site-packages", ""]
    # Zip files are looked into after folders are.
    sys.path_hooks.reverse()
    sys.path_importer_cache.clear()
    # The library's listing, so that the first import does not have to make it.
    loaders = vars(bootstrap)["_get_supported_file_loaders"]()
    finder: Any = bootstrap.FileFinder(LIBRARY, *loaders)
    finder._path_mtime = LIBRARY_MODIFIED
    finder._path_cache = names
    sys.path_importer_cache[LIBRARY] = finder
