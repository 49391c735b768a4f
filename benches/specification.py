"""Writes the measured part of SPECIFICATION.md from a benchmark run: `python benches/specification.py RESULTS.json`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COMMAND = "make bench"


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def row(benchmark: dict[str, Any], titles: dict[str, str]) -> str:
    extra = dict(benchmark["extra_info"])
    times = extra.pop("seconds", None) or benchmark["stats"]["data"]
    title = titles[benchmark["fullname"].partition("[")[0]]
    if benchmark["param"] is not None:
        title += f" ({benchmark['param']})"
    beside = ", ".join(f"{name}: {value}" for name, value in extra.items() if value != "")
    if title.startswith("resident memory"):
        return f"| {title} | – | – | 20 | {beside} |"
    ordered = sorted(times)
    tail = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    shown = milliseconds(tail) if len(ordered) >= 100 else "–"
    return f"| {title} | {milliseconds(statistics.median(ordered))} | {shown} | {len(ordered)} | {beside} |"


def titles() -> dict[str, str]:
    """The docstrings of the benchmarks, by name."""
    import ast

    found = {}
    for path in sorted((ROOT / "benches").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"benches/{path.name}::{node.name}"] = (ast.get_docstring(node) or node.name).replace("|", "/")
    return found


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    machine, known = results["machine_info"], titles()
    lane = "native" if len(sys.argv) < 3 else sys.argv[2]
    lines = [
        f"Lane: {lane}. Hypervisor `{machine['hypervisor']}`, interpreter in {machine['privilege_mode']}. "
        f"Machine: {machine['processor']}, Linux {machine['release']}, shared with other work. "
        f"Date: {results['datetime'][:10]}. Command: `{COMMAND}`. Times in milliseconds.",
        "",
        "| what | median | p99 | count | beside |",
        "|---|---|---|---|---|",
        *(row(benchmark, known) for benchmark in results["benchmarks"]),
    ]
    path = ROOT / "SPECIFICATION.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}", encoding="utf-8")
    print(f"{path.name}: {len(results['benchmarks'])} rows written")


if __name__ == "__main__":
    main()
