"""Spans of a run: every page that the guest read hangs below the execution that read it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import host_call
from wcpod.telemetry import traced_host_calls

pytest.importorskip("opentelemetry.sdk", reason="the extra 'otel' is not installed")

RUN = [sys.executable, "-m", "wcpod", "run", "--date", "2026-06-15", "--out", "out"]


@contextmanager
def collector() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """An OTLP collector on a loopback port; gives its address and what it received by path."""
    received: dict[str, list[bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, _format: str, *_args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_without_a_recording_span_nothing_is_added() -> None:
    def on_call(_call: Any) -> None:
        return None

    assert traced_host_calls(on_call) is on_call
    assert traced_host_calls(None) is None


def spans_of(call: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The span of an execution and that of a call in it."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    told: list[Any] = []
    with provider.get_tracer("test").start_as_current_span("execute_tool execute_code"):
        on_call = traced_host_calls(told.append)
    assert on_call is not None
    thread = threading.Thread(target=on_call, args=(call,))  # as the sandbox does, with no context
    thread.start()
    thread.join()
    provider.shutdown()
    assert told == [call]
    parent, span = kept.get_finished_spans()
    return parent, span


def test_the_span_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENABLE_SENSITIVE_DATA", raising=False)
    parent, span = spans_of(host_call("error", agent="SearchAgent", reason="no customer 4111"), monkeypatch)
    assert span.name == "execute_tool fetch_url"
    assert span.parent is not None
    assert span.parent.span_id == parent.context.span_id
    assert (span.end_time or 0) - (span.start_time or 0) == 100_000_000
    assert (span.status.status_code.name, span.status.description) == ("ERROR", None)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fetch_url",
        "gen_ai.agent.name": "SearchAgent",
        "wcpod.host_call.status": "error",
        "server.address": "www.bbc.com",
        "http.response.status_code": 200,
        "wcpod.fetch.bytes": 1,
        "wcpod.fetch.sha256": "0" * 64,
    }


SECRET = "SECRET"


def _with_secrets() -> list[Any]:
    call = host_call("blocked", agent="A", reason=f"the text {SECRET} of an error")
    fetch = call.fetch
    assert fetch is not None
    urls = (f"https://www.bbc.com/x?token={SECRET}", f"https://{SECRET}.evil.com/{SECRET}")
    fetches = [
        dataclasses.replace(fetch, url=urls[0], final_url=urls[0], title=SECRET, reason=SECRET),
        dataclasses.replace(fetch, url=urls[1], final_url=urls[1], host=f"{SECRET}.evil.com", decision="block"),
    ]
    calls = [dataclasses.replace(call, fetch=fetch) for fetch in fetches]
    names = [f"what was read: {SECRET}", SECRET * 20_000, f"{SECRET}\n", ""]
    return calls + [dataclasses.replace(call, name=name, fetch=None) for name in names]


@pytest.mark.parametrize("call", _with_secrets(), ids=range(6))
@pytest.mark.parametrize("switch", [None, "false", "true"])
def test_nothing_that_was_said_or_read_is_exported_unless_asked_for(
    call: Any, switch: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if switch is None:
        monkeypatch.delenv("ENABLE_SENSITIVE_DATA", raising=False)
    else:
        monkeypatch.setenv("ENABLE_SENSITIVE_DATA", switch)
    exported = spans_of(call, monkeypatch)[1].to_json()
    assert (SECRET in exported) is (switch == "true")
    assert len(exported) < 10_000


@pytest.mark.microvm
def test_the_spans_of_a_run(tmp_path: Path) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with collector() as (address, received):
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
        done = subprocess.run(
            [*RUN, "--trace", "spans.jsonl"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")

    spans = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text(encoding="utf-8").splitlines()]
    by_id = {span["context"]["span_id"]: span for span in spans}

    def path(span: dict[str, Any]) -> list[str]:
        parent = by_id.get(span["parent_id"])
        return [*(path(parent) if parent else []), span["name"]]

    fetches = [span for span in spans if span["name"] == "execute_tool fetch_url"]
    assert len(fetches) == 23
    for fetch in fetches:
        assert path(fetch)[-4:] == [
            "executor.process SearchAgent",
            "invoke_agent SearchAgent",
            "execute_tool execute_code",
            "execute_tool fetch_url",
        ]
    assert "各位听众" not in (tmp_path / "spans.jsonl").read_text(encoding="utf-8")

    sent = [
        span.name
        for body in received["/v1/traces"]
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert sorted(sent) == sorted(span["name"] for span in spans)


def test_a_trace_file_that_cannot_be_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, "--trace", "missing/spans.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "wcpod: cannot write the traces to missing/spans.jsonl: No such file or directory\n"
