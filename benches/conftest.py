"""What all benchmarks run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wcpod import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One sandbox with the default limits."""
    with Sandbox() as shared:
        yield shared


def pytest_report_header() -> str:
    with Sandbox() as probe:
        return f"micro-VM: {probe.isolation.hypervisor}, interpreter in {probe.isolation.privilege_mode}"
