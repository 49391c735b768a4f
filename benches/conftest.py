"""What all benchmarks run on, and how their results are kept: `make bench` writes SPECIFICATION.md with them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from figures import NOTED, NOTHING, Figure, Note
from specification import processor
from wcpod import Sandbox

ROOT = Path(__file__).parent.parent


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """For what pytest-benchmark cannot time: what another process measured, and what is counted."""
    node = request.node

    def keep(*, seconds: Sequence[float] = (), count: int | None = None, beside: Mapping[str, Any] = NOTHING) -> None:
        param = next(iter(node.callspec.params.values())) if hasattr(node, "callspec") else None
        param = None if param is None else str(param)
        NOTED.append(Figure(node.name, node.nodeid, param, list(seconds), count or len(seconds), dict(beside)))

    return keep


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Puts the figures beside the benchmarks."""
    output_json["figures"] = [dataclasses.asdict(figure) for figure in NOTED]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One sandbox with the default limits."""
    with Sandbox() as shared:
        yield shared


@pytest.fixture(scope="session")
def in_process() -> dict[str, list[float]]:
    """Seconds of the same component in a process of its own without a micro-VM: "fresh" instances and a "warm" one."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "guest" / "aot" / "target"))
    program = target / "release" / "in_process"
    build = ROOT / "guest" / "build"
    if not program.exists():
        pytest.skip(f"the baseline program is missing: {program} (make bench builds it)")
    command = [str(program), str(build / "python.wasm"), str(build / "stdlib.bin"), "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def pytest_report_header() -> str:
    with Sandbox() as probe:
        return f"micro-VM: {probe.isolation.hypervisor}, interpreter in {probe.isolation.privilege_mode}"


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Says what the times were taken on."""
    with Sandbox() as probe:
        machine_info["hypervisor"] = probe.isolation.hypervisor
        machine_info["privilege_mode"] = probe.isolation.privilege_mode
    machine_info["processor"] = processor()
