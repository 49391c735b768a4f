"""Fixtures and the header that says on what the tests run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from wcpod import HyperlightRuntime, Isolation, Limits, Sandbox
from wcpod.exceptions import WcpodError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-microvm", action="store_true", help="fail, not skip, where no micro-VM can boot")
    parser.addoption("--slowness", type=float, default=1.0, help="multiply time limits: for emulated processors")
    parser.addoption("--soak", action="store_true", help="run the long form of the soak test")


class Machine:
    """What a micro-VM boots on here, or why none does; found out once."""

    def __init__(self) -> None:
        self.isolation: Isolation | None = None
        self.missing = ""
        try:
            with Sandbox() as sandbox:
                self.isolation = sandbox.isolation
        except WcpodError as error:
            self.missing = str(error)


MACHINE = pytest.StashKey[Machine]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MACHINE] = Machine()


def pytest_report_header(config: pytest.Config) -> str:
    machine = config.stash[MACHINE]
    if machine.isolation is None:
        return f"micro-VM: none ({machine.missing})"
    return f"micro-VM: {machine.isolation.hypervisor}, interpreter in {machine.isolation.privilege_mode}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = config.stash[MACHINE].missing
    if not missing:
        return
    if config.getoption("--require-microvm"):
        raise pytest.UsageError(f"no micro-VM boots here: {missing}")
    for item in items:
        if item.get_closest_marker("microvm"):
            item.add_marker(pytest.mark.skip(reason=f"no micro-VM boots here: {missing}"))


@pytest.fixture(scope="session")
def slowness(request: pytest.FixtureRequest) -> float:
    """How much slower than usual this machine is."""
    return float(request.config.getoption("--slowness"))


@pytest.fixture
def runtime() -> Iterator[Callable[..., HyperlightRuntime]]:
    """Makes runtimes that are closed after the test."""
    with ExitStack() as stack:

        def make(**arguments: Any) -> HyperlightRuntime:
            return stack.enter_context(HyperlightRuntime(**arguments))

        yield make


@pytest.fixture(scope="session")
def sandbox(slowness: float) -> Iterator[Sandbox]:
    """One sandbox for all tests that leave its settings alone: every run starts clean anyway."""
    with Sandbox(limits=Limits(seconds=20 * slowness)) as shared:
        yield shared
