"""Modules that are not there: an error that says what is."""

import os
import sys
from types import ModuleType

SITE_PACKAGES = "/lib/python3.14/site-packages"

FETCH = 'there is no network here: use call_tool("fetch_url", url=...)'

_INSTEAD = {
    **dict.fromkeys(("aiohttp", "httpx", "pycurl", "requests", "ssl", "urllib3", "websockets"), FETCH),
    **dict.fromkeys(("bs4", "html5lib", "lxml", "selectolax"), "html.parser is there"),
    **dict.fromkeys(("ctypes", "multiprocessing"), "there are no processes and no native code here"),
    "yaml": "json and tomllib are there",
}


class _Missing:
    """The last finder: nobody else found the module."""

    @staticmethod
    def find_spec(name: str, path: object = None, _target: ModuleType | None = None) -> None:
        # find_spec of importlib.util only asks; names that start with "_" are accelerators that modules try.
        if path is not None or name.startswith("_") or sys._getframe(1).f_code.co_name != "_find_spec":
            return
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return
        raise ModuleNotFoundError(f"No module named {name!r} ({_what_is_there(name)})", name=name)


def _what_is_there(name: str) -> str:
    try:
        entries = [entry for entry in os.listdir(SITE_PACKAGES) if not entry.startswith("_")]
        packages = sorted(entry for entry in entries if not entry.endswith(".dist-info"))
    except OSError:
        packages = []
    there = "Python's standard library"
    if packages:
        there += " and " + ", ".join(entry.removesuffix(".py") for entry in packages)
    instead = _INSTEAD.get(name)
    if instead is None and name in sys.stdlib_module_names:
        instead = "a part of the standard library that cannot work in this sandbox"
    return f"{instead}; available: {there}" if instead else f"available: {there}; nothing can be installed"


def install() -> None:
    """Puts the finder behind all others."""
    sys.meta_path.append(_Missing)
