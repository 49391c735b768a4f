"""Prints what the extras named on the command line need, one requirement a line: `python tools/extras.py podcast otel`.

`maturin develop --extras` hands extras that name other extras of this package to pip, which asks the registry for them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import tomllib

OWN = re.compile(r"wcpod\[([\w,]+)\]")


def requirements(extras: dict[str, list[str]], names: list[str]) -> set[str]:
    found: set[str] = set()
    for requirement in (each for name in names for each in extras[name]):
        own = OWN.fullmatch(requirement)
        found |= requirements(extras, own[1].split(",")) if own else {requirement}
    return found


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print("\n".join(sorted(requirements(project["optional-dependencies"], sys.argv[1:]))))
