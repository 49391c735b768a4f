"""Traces of a run for a collector or a file. Needs the extra `otel`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from agent_framework.observability import configure_otel_providers

from wcpod.exceptions import PipelineError

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class TracingNotInstalled(PipelineError):
    """Traces were asked for, and the extra `otel` is missing."""


@contextlib.contextmanager
def tracing(file: Path | None) -> Iterator[None]:
    """Export the spans of what happens in the block: to `file`, one JSON object a line, and over OTLP to the endpoint
    of OpenTelemetry's own environment variables (http/protobuf unless they say otherwise). Neither: no spans at all.

    May be entered once in a process. Nothing that was said or read is exported unless $ENABLE_SENSITIVE_DATA is true.

    Raises:
        TracingNotInstalled: if the extra is missing.
        PipelineError: if the file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        if file is None and not any(os.environ.get(name) for name in _ENDPOINTS):
            yield
            return
        try:
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter
        except ImportError as error:
            raise TracingNotInstalled("traces need more packages: pip install 'wcpod[otel]'") from error
        from opentelemetry import trace

        exporters = []
        if file is not None:
            try:
                stream = stack.enter_context(file.open("w", encoding="utf-8"))
            except OSError as error:
                raise PipelineError(f"cannot write the traces to {file}: {error.strerror}") from error
            exporters.append(ConsoleSpanExporter(out=stream, formatter=lambda span: span.to_json(indent=None) + "\n"))
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        configure_otel_providers(service_name="wcpod", otlp_protocol=protocol, exporters=[*exporters])
        try:
            yield
        finally:
            provider = trace.get_tracer_provider()
            if isinstance(provider, TracerProvider):
                provider.shutdown()
