"""The server over streamable HTTP, on this machine only, for clients that present its token."""

from __future__ import annotations

import contextlib
import hmac
import socket
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
PATH = "/mcp"
_REQUEST_BYTES = 32 * 1024 * 1024
_ENDING_SECONDS = 2


class RequireToken:
    """Lets in whoever presents the token as bearer."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with 401."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        presented = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(presented) == 1 and hmac.compare_digest(presented[0], self._expected):
            await self._app(scope, receive, send)
            return
        refusal = PlainTextResponse("a bearer token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)


def serve_http(server: Server[Any], *, listening: socket.socket, token: str) -> None:
    """Serve clients on a socket of `listen` until SIGINT or SIGTERM."""
    app = server.streamable_http_app(host=HOST, streamable_http_path=PATH, max_request_body_size=_REQUEST_BYTES)
    config = uvicorn.Config(RequireToken(app, token), log_level="warning", timeout_graceful_shutdown=_ENDING_SECONDS)
    with contextlib.suppress(KeyboardInterrupt):  # the signal that ended it is raised again
        uvicorn.Server(config).run(sockets=[listening])


def listen(port: int) -> socket.socket:
    """A socket on this machine only; port 0 is a free one.

    Raises:
        OSError: if the port is taken.
    """
    return socket.create_server((HOST, port))
