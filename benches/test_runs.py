"""What a run costs. Three figures, because the cost of a restore moves into the page faults after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from figures import Note
from warm import warm_run
from wcpod import FetchPolicy, Limits, Sandbox
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES

CODE = "print(1)"


def test_restore(benchmark: Any, sandbox: Sandbox) -> None:
    """restore: the clean state brought back, nothing run"""
    benchmark(sandbox._vm.restore)


def test_restore_after_a_run(benchmark: Any, sandbox: Sandbox) -> None:
    """restore after a run of print(1), whose pages it throws away"""
    benchmark.pedantic(sandbox._vm.restore, setup=lambda: sandbox.run(CODE) and None, rounds=300)


def test_restore_and_run(benchmark: Any, sandbox: Sandbox) -> None:
    """restore + run of print(1): what Sandbox.run does"""
    result = benchmark(sandbox.run, CODE)
    assert result.stdout == "1\n"
    benchmark.extra_info["dirtied pages"] = result.usage.dirtied_pages
    benchmark.extra_info["known pages"] = sandbox._vm.known_pages


def test_run_after_an_interrupt(benchmark: Any, sandbox: Sandbox) -> None:
    """restore + run of print(1) after a run that was stopped at its limit: in a new virtual machine"""

    def interrupt() -> None:
        assert sandbox.run("while True: pass", limits=Limits(seconds=0.01)).kind == "timeout"

    benchmark.pedantic(sandbox.run, (CODE,), setup=interrupt, rounds=50)


def test_warm_run(benchmark: Any, sandbox: Sandbox) -> None:
    """warm run of print(1): without a restore; for comparison only, it is not offered"""

    def run() -> Any:
        return warm_run(sandbox, CODE)

    assert benchmark(run).stdout == "1\n"


def test_an_error(benchmark: Any, sandbox: Sandbox) -> None:
    """restore + run of 1/0, with its traceback"""
    assert benchmark(sandbox.run, "1/0").kind == "error"


def test_an_import(benchmark: Any, sandbox: Sandbox) -> None:
    """restore + run of "import csv", from the guest's file system"""
    assert benchmark(sandbox.run, "import csv").ok


def test_python(benchmark: Any, sandbox: Sandbox) -> None:
    """restore + run of sum(range(10**6)): the interpreter at work"""
    assert benchmark(sandbox.run, "print(sum(range(10**6)))").ok


def test_host_call(note: Note) -> None:
    """one call of a host tool, out of a run of 200"""
    with Sandbox(tools={"one": lambda: 1}, limits=Limits(host_calls=1000)) as made:

        def run() -> float:
            code = (
                "import time\nbegin = time.perf_counter()\nfor _ in range(200): call_tool('one')\n"
                "print((time.perf_counter() - begin) / 200)"
            )
            return float(made.run(code).stdout)

        note(seconds=[run() for _ in range(10)])


def test_fetch_from_an_archive(benchmark: Any) -> None:
    """restore + run of one fetch_url from a page archive"""
    with Sandbox(policy=FetchPolicy.bbc(), archive=SAMPLE_PAGES) as made:
        code = "p = call_tool('fetch_url', url='https://www.bbc.com/sport/football/world-cup')\nprint(p['STATUS'])"
        assert benchmark(made.run, code).stdout == "ok\n"


def test_capture(benchmark: Any, sandbox: Sandbox) -> None:
    """snapshot of what a run left"""
    sandbox.run(CODE)
    benchmark.pedantic(sandbox.snapshot, kwargs={"of_last_run": True}, rounds=5)


def test_cold_start(benchmark: Any) -> None:
    """cold start: from the guest image to a sandbox that is ready"""

    def start() -> None:
        Sandbox(cache=False).close()

    benchmark.pedantic(start, rounds=5, warmup_rounds=1)


def test_start_from_the_cache(benchmark: Any) -> None:
    """start from the state that an earlier process kept on disk, and the first run"""
    Sandbox().close()

    def start() -> None:
        with Sandbox() as made:
            assert made.run(CODE).stdout == "1\n"

    benchmark(start)


def test_first_result_of_a_new_process(note: Note, sandbox: Sandbox, tmp_path: Path) -> None:
    """from Snapshot.load in a new process to its first result, imports aside"""
    sandbox.snapshot().save(tmp_path / "clean")
    program = (
        "import sys, time\nfrom wcpod import Sandbox, Snapshot\nbegin = time.perf_counter()\n"
        "with Sandbox(snapshot=Snapshot.load(sys.argv[1])) as made: assert made.run('print(1)').stdout == '1\\n'\n"
        "print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "clean")]
    note(seconds=[float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(20)])


def test_a_further_sandbox(benchmark: Any, sandbox: Sandbox) -> None:
    """a further sandbox from the same snapshot, made and closed"""
    snapshot = sandbox.snapshot()

    def start() -> None:
        Sandbox(snapshot=snapshot).close()

    benchmark(start)
