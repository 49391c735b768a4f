"""The gates of benches/limits.json, in their short form: ratios and counts, because times here are noise."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wcpod import Sandbox
from wcpod.sandbox.image import image_path

pytestmark = pytest.mark.microvm

ROOT = Path(__file__).parent.parent
LIMITS = json.loads((ROOT / "benches" / "limits.json").read_text(encoding="utf-8"))
CODE = "print(1)"


def at_most(name: str) -> float:
    return float(LIMITS[name]["at most"])


def median(act: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@pytest.fixture(scope="module")
def in_process() -> dict[str, float]:
    """Median seconds of the same component without a micro-VM."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "guest" / "aot" / "target"))
    build = ROOT / "guest" / "build"
    program = str(target / "release" / "in_process")
    command = [program, str(build / "python.wasm"), str(build / "stdlib.bin"), "150"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: statistics.median(times) for name, times in json.loads(done.stdout).items()}


def test_dirtied_pages(sandbox: Sandbox) -> None:
    sandbox.run(CODE)
    assert sandbox.run(CODE).usage.dirtied_pages <= at_most("dirtied pages of print(1)")


def test_restore_and_run_against_a_fresh_instance_in_process(sandbox: Sandbox, in_process: dict[str, float]) -> None:
    ratio = median(lambda: sandbox.run(CODE), 150) / in_process["fresh"]
    assert ratio <= at_most("restore + run over in-process fresh instance")


def test_a_start_from_disk_against_a_cold_start() -> None:
    def start(cache: bool) -> None:
        with Sandbox(cache=cache) as made:
            made.run(CODE)

    start(True)
    ratio = median(lambda: start(True), 9) / median(lambda: start(False), 3)
    assert ratio <= at_most("start from a snapshot on disk over cold start")


def test_memory_of_a_further_sandbox(sandbox: Sandbox) -> None:
    def resident_kib() -> int:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    snapshot = sandbox.snapshot()
    before = resident_kib()
    made = [Sandbox(snapshot=snapshot) for _ in range(20)]
    for each in made:
        each.run(CODE)
    grown = (resident_kib() - before) / len(made)
    for each in made:
        each.close()
    assert grown <= at_most("KiB of a further sandbox after a run")


def test_size_of_the_guest_image() -> None:
    assert image_path().stat().st_size <= at_most("bytes of the guest image")
