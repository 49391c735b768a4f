"""A runtime for tests of the agent side: it answers with results prepared beforehand and never runs any code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wcpod.sandbox import ExecutionResult, FetchRecord, HostCall, Isolation, Usage
from wcpod.sandbox.result import CallStatus

ISOLATION = Isolation(tier="micro-vm", hypervisor="kvm", privilege_mode="ring3")
USAGE = Usage(seconds=0.01, restore_seconds=0.001, dirtied_pages=1, peak_memory=1)


def outcome(
    stdout: str = "", stderr: str = "", *, kind: str = "ok", exit_code: int | None = None, **fields: Any
) -> ExecutionResult:
    """A result as the sandbox would give it."""
    prepared: dict[str, Any] = {
        "kind": kind,
        "exit_code": (0 if kind == "ok" else 1) if exit_code is None else exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "value": None,
        "files": {},
        "host_calls": (),
        "usage": USAGE,
        "truncated": None,
        "isolation": ISOLATION,
        "detail": None,
    }
    return ExecutionResult(**{**prepared, **fields})


def host_call(status: CallStatus = "ok", *, agent: str | None = None, reason: str | None = None) -> HostCall:
    """A `fetch_url` of the guest."""
    url = "https://www.bbc.com/sport/football/world-cup"
    fetch = FetchRecord(
        time="2026-06-15T06:00:00Z",
        agent=agent,
        url=url,
        final_url=url,
        status="ok" if status == "ok" else "error",
        decision="allow",
        reason=reason,
        host="www.bbc.com",
        address=None,
        http_status=200,
        bytes=1,
        sha256="0" * 64,
        title="T",
        duration=0.1,
        from_cache=False,
        redirects=0,
        truncated=False,
    )
    return HostCall(name="fetch_url", agent=agent, status=status, seconds=0.1, reason=reason, fetch=fetch)


class CannedRuntime:
    """Answers each execution by `answer(code)`, after making `calls` host calls through `on_call`."""

    isolation = ISOLATION

    def __init__(
        self, answer: Callable[[str], ExecutionResult] = lambda _: outcome("ok\n"), calls: tuple[HostCall, ...] = ()
    ) -> None:
        self.answer = answer
        self.calls = calls
        self.codes: list[tuple[str, str]] = []
        self.host_call_counts: dict[str, dict[str, int]] = {}
        self.running = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def execute(self, code: str, *, agent: str, on_call: Callable[[HostCall], None] | None = None) -> ExecutionResult:
        """Note the code, make the host calls, answer."""
        with self._lock:
            self.running += 1
            self.most_at_once = max(self.most_at_once, self.running)
        try:
            self.codes.append((agent, code))
            for call in self.calls:
                counts = self.host_call_counts.setdefault(agent, {})
                counts[call.name] = counts.get(call.name, 0) + 1
                if on_call is not None:
                    on_call(call)
            return dataclasses.replace(self.answer(code), host_calls=self.calls)
        finally:
            with self._lock:
                self.running -= 1

    def __enter__(self) -> Any:
        """Stands in for a `HyperlightRuntime`."""
        return self

    def __exit__(self, *exc: object) -> None:
        return None


def canned(_pages: Path) -> CannedRuntime:
    """For `open_runtime=`: a runtime that reads nothing."""
    return CannedRuntime()


def reading(texts: Mapping[str, str], **options: Any) -> Callable[[Path], CannedRuntime]:
    """For `open_runtime=`: a runtime whose every execution reads these pages (address → text)."""

    def open_runtime(pages: Path) -> CannedRuntime:
        pages.mkdir(parents=True, exist_ok=True)
        calls = []
        with (pages / "index.jsonl").open("w", encoding="utf-8") as index:
            for number, (url, text) in enumerate(texts.items()):
                data = text.encode()
                sha256 = hashlib.sha256(data).hexdigest()
                (pages / f"{number}.txt").write_bytes(data)
                entry = {"url": url, "status": 200, "content_type": "text/plain; charset=utf-8"}
                index.write(json.dumps({**entry, "file": f"{number}.txt", "sha256": sha256}) + "\n")
                call = host_call()
                assert call.fetch is not None
                fetch = dataclasses.replace(call.fetch, url=url, final_url=url, sha256=sha256)
                calls.append(dataclasses.replace(call, fetch=fetch))
        return CannedRuntime(calls=tuple(calls), **options)

    return open_runtime
