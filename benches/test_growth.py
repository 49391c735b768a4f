"""How costs grow: with threads, sandboxes and memory limits."""

from __future__ import annotations

import itertools
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from figures import Note
from wcpod import Limits, Sandbox

RUNS = 120


def rate(sandboxes: list[Sandbox]) -> float:
    """Runs a second with a thread for each sandbox."""

    def work(sandbox: Sandbox) -> None:
        for _ in range(RUNS // len(sandboxes)):
            sandbox.run("print(1)")

    begin = time.perf_counter()
    with ThreadPoolExecutor(len(sandboxes)) as pool:
        list(pool.map(work, sandboxes))
    return RUNS / (time.perf_counter() - begin)


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_throughput(note: Note, sandbox: Sandbox, threads: int) -> None:
    """time per run, so many threads with a sandbox each, all of one snapshot"""
    snapshot = sandbox.snapshot()
    made = [Sandbox(snapshot=snapshot) for _ in range(threads)]
    rates = [rate(made) for _ in range(3)]
    note(seconds=[1 / each for each in rates], beside={"runs a second": round(statistics.median(rates))})
    for each in made:
        each.close()


@pytest.mark.parametrize("memory_mib", [64, 128, 256, 512])
def test_restore_by_memory(benchmark: Any, memory_mib: int) -> None:
    """restore, by memory limit in MiB"""
    with Sandbox(limits=Limits(memory_mib=memory_mib)) as made:
        for _ in range(3):
            made.run("print(1)")
        benchmark(made._vm.restore)


def resident_kib() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def test_memory_of_further_sandboxes(note: Note, sandbox: Sandbox) -> None:
    """resident memory of a further sandbox after a run, the mean of 20"""
    snapshot = sandbox.snapshot()
    sandbox.run("print(1)")
    before = resident_kib()
    made = [Sandbox(snapshot=snapshot) for _ in range(20)]
    for each in made:
        each.run("print(1)")
    note(count=len(made), beside={"KiB": round((resident_kib() - before) / len(made))})
    for each in made:
        each.close()


@pytest.mark.parametrize("kept_mib", [0, 4, 16, 40])
def test_captured_state(benchmark: Any, sandbox: Sandbox, kept_mib: int) -> None:
    """restore + run from a captured state, by its MiB of data"""
    sandbox.run(f"kept = bytearray({kept_mib} << 20)")
    with Sandbox(snapshot=sandbox.snapshot(of_last_run=True)) as made:
        made.run("print(1)")
        assert benchmark(made.run, "print(1)").stdout == "1\n"


@pytest.mark.parametrize("count", [1, 8, 32, 128])
def test_many_sandboxes(benchmark: Any, sandbox: Sandbox, count: int) -> None:
    """restore + run, so many sandboxes of one snapshot in turn"""
    snapshot = sandbox.snapshot()
    before = resident_kib()
    made = [Sandbox(snapshot=snapshot) for _ in range(count)]
    for each in made * 2:
        each.run("print(1)")
    benchmark.extra_info["KiB each"] = round((resident_kib() - before) / count)
    turn = itertools.cycle(made)
    assert benchmark(lambda: next(turn).run("print(1)")).stdout == "1\n"
    for each in made:
        each.close()
