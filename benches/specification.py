"""Writes the measured parts of SPECIFICATION.md.

`python benches/specification.py RESULTS.json` from a run of the suite, `--stock-kvm OUTPUT` from that of stock_kvm.py,
`--fetch OUTPUT` from that of `cargo bench -p egress --bench call`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MEASURED, STOCK_KVM, FETCH = "measured", "measured on stock KVM", "fetch"
COMMAND, FETCH_COMMAND = "make bench", "cargo bench -p egress --bench call"


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def row(benchmark: dict[str, Any], titles: dict[str, str]) -> str:
    extra = dict(benchmark["extra_info"])
    times = extra.pop("seconds", None) or benchmark["stats"]["data"]
    title = titles[benchmark["fullname"].partition("[")[0]]
    if benchmark["param"] is not None:
        title += f" ({benchmark['param']})"
    counted = extra.pop("counted", None)
    beside = ", ".join(f"{name}: {value}" for name, value in extra.items() if value != "")
    if counted is not None:
        return f"| {title} | – | – | {counted} | {beside} |"
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


def write(part: str, lines: list[str]) -> None:
    """Puts lines between the marks of a part."""
    path = ROOT / "SPECIFICATION.md"
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{chr(10).join(lines)}\n{end}{after}", encoding="utf-8")
    print(f"{path.name}: {len(lines)} lines written")


def suite(results: dict[str, Any]) -> list[str]:
    machine, known = results["machine_info"], titles()
    return [
        f"Lane: native. Hypervisor `{machine['hypervisor']}`, interpreter in {machine['privilege_mode']}. "
        f"Machine: {machine['processor']}, Linux {machine['release']}, shared with other work. "
        f"Date: {results['datetime'][:10]}. Command: `{COMMAND}`. Times in milliseconds.",
        "",
        "| what | median | p99 | count | beside |",
        "|---|---|---|---|---|",
        *(row(benchmark, known) for benchmark in results["benchmarks"]),
    ]


def processor() -> str:
    """Name and number of this machine's cores."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def fetch(printed: list[str]) -> list[str]:
    return [
        f"Machine: {processor()}, Linux {platform.release()}, shared with other work. "
        f"Date: {dt.datetime.now(dt.UTC):%Y-%m-%d}. Command: `{FETCH_COMMAND}`. Times in milliseconds.",
        "",
        "| what | median | p99 | count |",
        "|---|---|---|---|",
        *printed,
    ]


BARS = {"restore": 0.3, "restore + run": 0.5, "warm run": 0.7}


def stock_kvm(result: dict[str, Any]) -> list[str]:
    lines = [
        f"Lane: stock KVM, `{result['hypervisor']}` (kvm_amd) inside QEMU's software processor (`-cpu EPYC`, a core), "
        f"interpreter in {result['privilege_mode']}. Date: {result['date']}. Command: `make bench-nested`. "
        "Times are the emulator's: compare them only with each other.",
        "",
        "| `print(1)` | wcpod: median, p99 | hyperlight-sandbox 0.8.0: median, p99 | count each | ratio | bar |",
        "|---|---|---|---|---|---|",
    ]
    for what, times in result["seconds"].items():
        shown, medians = [], []
        for who in ("wcpod", "peer"):
            ordered = sorted(times[who])
            medians.append(statistics.median(ordered))
            shown.append(f"{milliseconds(medians[-1])} ms, {milliseconds(ordered[int(len(ordered) * 0.99)])} ms")
        ratio = medians[0] / medians[1]
        bar = f"at most {BARS[what]} ×" + (": **not met**" if ratio > BARS[what] else "")
        lines.append(f"| {what} | {shown[0]} | {shown[1]} | {len(times['wcpod'])} | {ratio:.2f} × | {bar} |")
    for name in result["counts"]["wcpod"]:
        ours, peer = (result["counts"][who][name] for who in ("wcpod", "peer"))
        lines.append(f"| restore + run: {name} | {ours} | {peer} | 20 | | |")
    return lines


def main() -> None:
    kind, path = sys.argv[1] if len(sys.argv) > 2 else "", Path(sys.argv[-1])
    text = path.read_text(encoding="utf-8")
    marks = {"--stock-kvm": "@bench ", "--fetch": "| "}
    found = [line for line in text.splitlines() if line.startswith(marks.get(kind, ""))]
    if not found:
        sys.exit(f"{path} has no result: the run did not come to its end")
    if kind == "--stock-kvm":
        write(STOCK_KVM, stock_kvm(json.loads(found[-1].removeprefix(marks[kind]))))
    elif kind == "--fetch":
        write(FETCH, fetch(found))
    else:
        write(MEASURED, suite(json.loads(text)))


if __name__ == "__main__":
    main()
