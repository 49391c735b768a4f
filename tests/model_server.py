"""A fake model server on a loopback port: OpenAI's Responses and Chat Completions, for the real clients."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server answers: text or calls (name, JSON text of the arguments), or an HTTP status that is an error.

    `raw` is a content type and a body that take the place of it all.
    """

    text: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    ended: str = "stop"
    status: int = 200
    delay: float = 0.0
    raw: tuple[str, bytes] | None = None


def call(name: str, **arguments: Any) -> Reply:
    """A reply that calls one tool."""
    return Reply(calls=[(name, json.dumps(arguments))])


Answer = Callable[[dict[str, Any]], Reply]


def tool_outputs(request: dict[str, Any]) -> list[str]:
    """The tool results that a request of either API carries."""
    responses = [item["output"] for item in request.get("input", []) if item.get("type") == "function_call_output"]
    return responses or [m["content"] for m in request.get("messages", []) if m.get("role") == "tool"]


def tool_names(request: dict[str, Any]) -> list[str]:
    """The names of the tools on offer, sorted; anything but a function shows with its type."""
    names = []
    for tool in request["tools"]:
        names.append(tool.get("function", tool)["name"] if tool["type"] == "function" else tool["type"])
    return sorted(names)


@contextmanager
def model_server(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve while the block runs; gives the base URL and the list of request bodies received."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(request)
            reply = answer(request)
            time.sleep(reply.delay)
            render = _chat_completion if self.path.endswith("/chat/completions") else _response
            body = {"error": {"message": "told to fail"}} if reply.status != 200 else render(reply, len(requests))
            media_type, data = reply.raw or ("application/json", json.dumps(body).encode())
            self.send_response(reply.status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After-Ms", "1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, _format: str, *_args: Any) -> None:
            return None

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                return  # the client gave up on a slow answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _response(reply: Reply, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{number}_{index}",
            "call_id": f"call_{number}_{index}",
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    if reply.text is not None:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        output.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
        )
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if reply.ended in reasons else "completed",
        "incomplete_details": {"reason": reasons[reply.ended]} if reply.ended in reasons else None,
        "model": "fake",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 7,
            "output_tokens": 3,
            "total_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _chat_completion(reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": f"call_{number}_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(reply.calls)
        ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else reply.ended}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
