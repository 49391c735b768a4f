"""What a run costs. Three figures, because the cost of a restore moves into the page faults after it."""

from __future__ import annotations

from typing import Any

from wcpod import Sandbox, _bridge

CODE = "print(1)"


def test_restore(benchmark: Any, sandbox: Sandbox) -> None:
    """The clean snapshot brought back, nothing run."""
    benchmark(sandbox._vm.restore)


def test_restore_and_run(benchmark: Any, sandbox: Sandbox) -> None:
    """What `Sandbox.run` does."""
    result = benchmark(sandbox.run, CODE)
    assert result.stdout == "1\n"
    benchmark.extra_info["dirtied_pages"] = result.usage.dirtied_pages


def test_warm_run(benchmark: Any, sandbox: Sandbox) -> None:
    """Without a restore: for comparison only, it is not offered."""

    def run() -> Any:
        return sandbox._run(CODE, None, None, None, session=None, agent=None, stop=_bridge.Stop(), warm=True)

    assert benchmark(run).stdout == "1\n"


def test_cold_start(benchmark: Any) -> None:
    """From the guest image to a sandbox that is ready: boot, rehearsal, snapshot."""

    def start() -> None:
        Sandbox(cache=False).close()

    benchmark.pedantic(start, rounds=5, warmup_rounds=1)


def test_start_from_the_cache(benchmark: Any) -> None:
    """A sandbox from the clean state that an earlier process kept, and its first run."""
    Sandbox().close()

    def start() -> None:
        with Sandbox() as sandbox:
            assert sandbox.run(CODE).stdout == "1\n"

    benchmark(start)


def test_a_further_sandbox(benchmark: Any, sandbox: Sandbox) -> None:
    """From the same snapshot, in the same process."""
    snapshot = sandbox.snapshot()

    def start() -> None:
        Sandbox(snapshot=snapshot).close()

    benchmark(start)
