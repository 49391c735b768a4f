"""Runs without the clean restore, for comparison. Only an extension built with the feature `bench` has them."""

from __future__ import annotations

from wcpod import ExecutionResult, Sandbox


def warm_run(sandbox: Sandbox, code: str) -> ExecutionResult:
    """Runs code in the state that the last run left."""
    run = sandbox._new_run(code, {}, None, None)
    core: object = sandbox._vm
    return run.result(core.run_without_restore(run.order))  # type: ignore[attr-defined]
