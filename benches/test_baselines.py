"""What others cost for the same print(1), in the same run on the same machine."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest


def test_in_process_fresh(benchmark: Any, in_process: dict[str, list[float]]) -> None:
    """baseline: the same component in-process on Wasmtime, a fresh instance"""
    benchmark.extra_info["seconds"] = in_process["fresh"]
    benchmark.pedantic(lambda: None, rounds=1)


def test_in_process_warm(benchmark: Any, in_process: dict[str, list[float]]) -> None:
    """baseline: the same component in-process on Wasmtime, warm"""
    benchmark.extra_info["seconds"] = in_process["warm"]
    benchmark.pedantic(lambda: None, rounds=1)


def test_subprocess(benchmark: Any) -> None:
    """baseline: python -I -c, a process each; no isolation"""
    command = [sys.executable, "-I", "-c", "print(1)"]

    def run() -> bytes:
        return subprocess.run(command, capture_output=True, check=True).stdout

    assert benchmark(run) == b"1\n"


def test_monty(benchmark: Any) -> None:
    """baseline: pydantic-monty, an interpreter of its own in a worker process; a session each"""
    monty = pytest.importorskip("pydantic_monty", reason="pydantic-monty is not installed")
    benchmark.extra_info["version"] = metadata.version("pydantic-monty")
    with monty.Monty() as pool:

        def run() -> int:
            with pool.checkout() as session:
                return int(session.feed_run("1+1"))

        assert benchmark(run) == 2
