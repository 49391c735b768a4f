"""Draws the pictures of SPECIFICATION.md from a benchmark run: `python benches/plots.py RESULTS.json`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from figures import Figure, figures

PLOTS = Path(__file__).parent.parent / "docs" / "plots"
SHOWN = {
    "test_restore": "restore",
    "test_warm_run": "warm run",
    "test_restore_and_run": "restore + run",
    "test_in_process_fresh": "in-process, fresh",
    "test_start_from_the_cache": "start from disk + run",
    "test_subprocess": "python subprocess",
}


def distributions(found: list[Figure], note: str) -> None:
    """How the times of print(1) are spread: the share of runs that took at most so long."""
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for name, label in SHOWN.items():
        for each in found:
            if each.name == name:
                times = sorted(each.seconds)
                at = sorted({round(share / 200 * (len(times) - 1)) for share in range(201)})
                shares = [(index + 1) / len(times) for index in at]
                axes.step([times[index] * 1e3 for index in at], shares, where="post", label=label)
    axes.set(xscale="log", xlabel="milliseconds", ylabel="share of runs that took at most so long", ylim=(0, 1.02))
    axes.set_title(f"print(1), one run of the suite\n{note}", fontsize=9)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(PLOTS / "distributions.svg")


GROWTH = (
    ("test_restore_by_memory", "memory limit, MiB", "restore, milliseconds"),
    ("test_captured_state", "captured state, MiB", "restore + run, milliseconds"),
    ("test_many_sandboxes", "sandboxes of one snapshot, in turn", "restore + run, milliseconds"),
    ("test_throughput", "threads, a sandbox each", "runs a second"),
)


def growth(found: list[Figure], note: str) -> None:
    """How costs grow with memory limit, state and number of sandboxes, and throughput with threads."""
    figure, panels = plt.subplots(2, 2, figsize=(8, 5.6), layout="constrained")
    for axes, (name, across, up) in zip(panels.flat, GROWTH, strict=True):
        points = [each for each in found if each.name.startswith(name + "[")]
        values = [statistics.median(each.seconds) for each in points]
        ticks = [str(each.param) for each in points]
        rate = up == "runs a second"
        axes.plot(ticks, [1 / value if rate else value * 1e3 for value in values], marker="o")
        axes.set(xlabel=across, ylabel=up, ylim=(0, None))
        axes.grid(alpha=0.3)
    figure.suptitle(note, fontsize=9)
    figure.savefig(PLOTS / "growth.svg")


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    machine = results["machine_info"]
    note = f"{machine['hypervisor']}, {machine['privilege_mode']}, {machine['processor']}, {results['datetime'][:10]}"
    mpl.rcParams["svg.hashsalt"] = "wcpod"
    distributions(figures(results), note)
    growth(figures(results), note)
    print(f"{PLOTS.name}/distributions.svg and growth.svg drawn")


if __name__ == "__main__":
    main()
