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

from figures import Figure, figures, titles

ROOT = Path(__file__).parent.parent
IMAGE = ROOT / "python" / "wcpod" / "guest" / "python-guest.bin"
MEASURED, BARS, STOCK_KVM, FETCH = "measured", "bars", "measured on stock KVM", "fetch"
COMMAND, FETCH_COMMAND = "make bench", "cargo bench -p egress --bench call"


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def row(figure: Figure, titles: dict[str, str]) -> str:
    title = titles[figure.fullname.partition("[")[0]]
    if figure.param is not None:
        title += f" ({figure.param})"
    beside = ", ".join(f"{name}: {value}" for name, value in figure.beside.items() if value != "")
    if not figure.seconds:
        return f"| {title} | – | – | {figure.count} | {beside} |"
    ordered = sorted(figure.seconds)
    tail = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    shown = milliseconds(tail) if len(ordered) >= 100 else "–"
    return f"| {title} | {milliseconds(statistics.median(ordered))} | {shown} | {figure.count} | {beside} |"


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
        *(row(figure, known) for figure in figures(results)),
    ]


def bars(found: list[Figure]) -> list[str]:
    """What was promised, beside what this run of the suite found."""
    by_name = {figure.name: figure for figure in found}

    def median(name: str) -> float:
        return statistics.median(by_name[name].seconds)

    def beside(name: str, key: str) -> float:
        return float(by_name[name].beside[key])

    in_process = {kind: median(f"test_in_process_{kind}") for kind in ("fresh", "warm")}
    memory = [median(f"test_restore_by_memory[{mib}]") for mib in (64, 512)]
    rates = [beside(f"test_throughput[{threads}]", "runs a second") for threads in (1, 2)]
    rows = [
        (
            "restore + run of `print(1)`, times in-process, fresh",
            "<=",
            2.5,
            median("test_restore_and_run") / in_process["fresh"],
        ),
        ("warm run, times in-process, warm", "<=", 5, median("test_warm_run") / in_process["warm"]),
        ("pages dirtied by `print(1)`", "<=", 80, beside("test_restore_and_run", "dirtied pages")),
        (
            "from `Snapshot.load` in a new process to its first result, ms",
            "<=",
            20,
            median("test_first_result_of_a_new_process") * 1e3,
        ),
        (
            "a further sandbox from the same snapshot, made and closed, ms",
            "<=",
            2,
            median("test_a_further_sandbox") * 1e3,
        ),
        (
            "resident memory of a further sandbox after a run, KiB",
            "<=",
            3072,
            beside("test_memory_of_further_sandboxes", "KiB"),
        ),
        ("runs a second of two threads with a sandbox each, times one", ">=", 1.7, rates[1] / rates[0]),
        ("restore at 512 MiB, times that at 64 MiB", "<=", 1.3, memory[1] / memory[0]),
        ("guest image, MB", "<=", 60, IMAGE.stat().st_size / 1e6),
    ]
    lines = ["| what | bar | found |", "|---|---|---|"]
    for what, sign, bar, value in rows:
        met = value <= bar if sign == "<=" else value >= bar
        shown = f"{value:.3g}" if value < 100 else f"{value:.0f}"
        least = "most" if sign == "<=" else "least"
        lines.append(f"| {what} | at {least} {bar} | {'' if met else '**not met**: '}{shown} |")
    return lines


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


STOCK_KVM_BARS = {"restore": 0.3, "restore + run": 0.5, "warm run": 0.7}


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
        most = STOCK_KVM_BARS[what]
        bar = f"at most {most} ×" + (": **not met**" if ratio > most else "")
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
        results = json.loads(text)
        write(MEASURED, suite(results))
        write(BARS, bars(figures(results)))


if __name__ == "__main__":
    main()
