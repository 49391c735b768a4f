"""OpenTelemetry spans for what the guest asks of the host, as children of the `execute_code` that caused it.

The guest's calls never pass the framework, so its own spans end at `execute_code`. Only OpenTelemetry's interface is
needed here; it costs nothing until somebody installs a provider (`wcpod.podcast.tracing`, or the host's own).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode

if TYPE_CHECKING:
    from wcpod.sandbox import HostCall

OnCall = Callable[["HostCall"], None]


def traced_host_calls(on_call: OnCall | None) -> OnCall | None:
    """`on_call`, which also ends a span `execute_tool NAME` for each call, below the span that is current now.

    The sandbox tells of a call when it is over, on a thread of its own; so the parent is taken here, and the span is
    dated back by the seconds that the call took.
    """
    parent = context.get_current()
    if not trace.get_current_span(parent).is_recording():
        return on_call
    tracer = trace.get_tracer("wcpod")

    def call_ended(call: HostCall) -> None:
        end = time.time_ns()
        span = tracer.start_span(
            f"execute_tool {call.name}",
            context=parent,
            start_time=end - int(call.seconds * 1e9),
            attributes=_attributes(call),
        )
        if call.status != "ok":
            span.set_status(Status(StatusCode.ERROR, call.reason))
        span.end(end)
        if on_call is not None:
            on_call(call)

    return call_ended


def _attributes(call: HostCall) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "wcpod.host_call.status": call.status,
    }
    if call.agent is not None:
        attributes["gen_ai.agent.name"] = call.agent
    fetch = call.fetch
    if fetch is not None:
        attributes |= {"url.full": fetch.final_url, "wcpod.fetch.bytes": fetch.bytes}
        if fetch.http_status is not None:
            attributes["http.response.status_code"] = fetch.http_status
        if fetch.sha256 is not None:
            attributes["wcpod.fetch.sha256"] = fetch.sha256
    return attributes
