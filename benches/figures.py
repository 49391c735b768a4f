"""What a benchmark found, whether pytest-benchmark timed it or another process did, or it was counted."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Figure:
    """The seconds of each round, or a count of rounds without times, with whatever stands beside it."""

    name: str
    fullname: str
    param: str | None
    seconds: list[float]
    count: int
    beside: dict[str, Any]


#: What this run of the suite noted.
NOTED: list[Figure] = []


class Note(Protocol):
    """Keeps a figure under the name of the benchmark that calls it."""

    def __call__(
        self, *, seconds: Sequence[float] = (), count: int | None = None, beside: Mapping[str, Any] = NOTHING
    ) -> None: ...


def figures(results: dict[str, Any]) -> list[Figure]:
    """All of a results file, in the order of the benchmarks' files."""
    timed = []
    for each in results["benchmarks"]:
        times = each["stats"]["data"]
        timed.append(Figure(each["name"], each["fullname"], each["param"], times, len(times), each["extra_info"]))
    order = list(titles())
    noted = [Figure(**each) for each in results["figures"]]
    return sorted([*timed, *noted], key=lambda figure: order.index(figure.fullname.partition("[")[0]))


def titles() -> dict[str, str]:
    """The docstrings of the benchmarks, by name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"benches/{path.name}::{node.name}"] = (ast.get_docstring(node) or node.name).replace("|", "/")
    return found
