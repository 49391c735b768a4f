"""Spans of a run: every page that the guest read hangs below the execution that read it."""

from __future__ import annotations

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


def test_the_span_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    told: list[Any] = []
    with provider.get_tracer("test").start_as_current_span("execute_tool execute_code") as parent:
        on_call = traced_host_calls(told.append)
    assert on_call is not None
    call = host_call("blocked", agent="SearchAgent", reason="not on the allow-list")
    thread = threading.Thread(target=on_call, args=(call,))  # as the sandbox does, with no context
    thread.start()
    thread.join()
    provider.shutdown()
    assert told == [call]
    _, span = kept.get_finished_spans()
    assert span.name == "execute_tool fetch_url"
    assert span.parent is not None
    assert span.parent.span_id == parent.get_span_context().span_id
    assert (span.end_time or 0) - (span.start_time or 0) == 100_000_000
    assert (span.status.status_code.name, span.status.description) == ("ERROR", "not on the allow-list")
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fetch_url",
        "gen_ai.agent.name": "SearchAgent",
        "wcpod.host_call.status": "blocked",
        "url.full": "https://www.bbc.com/sport/football/world-cup",
        "http.response.status_code": 200,
        "wcpod.fetch.bytes": 1,
        "wcpod.fetch.sha256": "0" * 64,
    }


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
    assert len(fetches) == 21
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
