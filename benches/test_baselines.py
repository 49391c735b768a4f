"""What others cost for the same print(1), in the same run on the same machine."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from figures import Note


def test_in_process_fresh(note: Note, in_process: dict[str, list[float]]) -> None:
    """baseline: the same component in-process on Wasmtime, a fresh instance"""
    note(seconds=in_process["fresh"])


def test_in_process_warm(note: Note, in_process: dict[str, list[float]]) -> None:
    """baseline: the same component in-process on Wasmtime, warm"""
    note(seconds=in_process["warm"])


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

        def run() -> list[tuple[str, str]]:
            printed: list[tuple[str, str]] = []
            with pool.checkout() as session:
                session.feed_run("print(1)", print_callback=lambda stream, text: printed.append((stream, text)))
            return printed

        assert benchmark(run) == [("stdout", "1\n")]
