"""OpenTelemetry spans for what the guest asks of the host, as children of the `execute_code` that caused it.

The guest's calls never pass the framework, so its own spans end at `execute_code`. Only OpenTelemetry's interface is
needed here; it costs nothing until somebody installs a provider (`wcpod.podcast.tracing`, or the host's own).

Of a fetch a span tells the host that was allowed and how it ended. Whole URLs and the texts of errors can hold what the
code read or was given: they are there only when $ENABLE_SENSITIVE_DATA is true, the framework's own switch.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode

if TYPE_CHECKING:
    from wcpod.sandbox import HostCall

SENSITIVE_DATA = "ENABLE_SENSITIVE_DATA"
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_MOST_TEXT = 1024

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
            f"execute_tool {_name(call)}",
            context=parent,
            start_time=end - int(call.seconds * 1e9),
            attributes=_attributes(call),
        )
        if call.status != "ok":
            span.set_status(Status(StatusCode.ERROR, (call.reason or "")[:_MOST_TEXT] if _sensitive_too() else None))
        span.end(end)
        if on_call is not None:
            on_call(call)

    return call_ended


def _attributes(call: HostCall) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": _name(call),
        "wcpod.host_call.status": call.status,
    }
    if call.agent is not None:
        attributes["gen_ai.agent.name"] = call.agent[:_MOST_TEXT]
    fetch = call.fetch
    if fetch is not None:
        attributes["wcpod.fetch.bytes"] = fetch.bytes
        if fetch.decision == "allow" and fetch.host is not None:
            attributes["server.address"] = fetch.host
        if fetch.http_status is not None:
            attributes["http.response.status_code"] = fetch.http_status
        if fetch.sha256 is not None:
            attributes["wcpod.fetch.sha256"] = fetch.sha256
        if _sensitive_too():
            attributes["url.full"] = fetch.final_url[:_MOST_TEXT]
    return attributes


def _name(call: HostCall) -> str:
    """The code chooses the name that it calls."""
    return call.name if _NAME.fullmatch(call.name) else "(unknown)"


def _sensitive_too() -> bool:
    return os.environ.get(SENSITIVE_DATA, "").strip().lower() in ("true", "1", "yes", "on")
