"""The server over HTTP: the token, foreign hosts, and the official client."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """Address and token of a server, which SIGINT ends with exit code 0."""
    command = [sys.executable, "-m", "wcpod", "mcp", "--http", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/mcp)  token: (\S{32})\n", process.stdout.readline())
        assert found is not None
        yield found[1], found[2]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic {token}"}, 401),
        ({"Authorization": "Bearer {token}", "Host": "evil.example"}, 421),
        ({"Authorization": "Bearer {token}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": "Bearer {token}"}, 200),
    ],
)
def test_who_is_let_in(server: tuple[str, str], headers: dict[str, str], status: int) -> None:
    address, token = server
    sent = {"Accept": "application/json, text/event-stream"}
    sent |= {name: value.format(token=token) for name, value in headers.items()}
    assert httpx2.post(address, json=INITIALIZE, headers=sent, trust_env=False).status_code == status


@pytest.mark.parametrize("body", [b'{"id": 1, "x": "\\ud83d"}', b"oops", b"[" * 5000, b""])
def test_what_is_no_message_is_answered(server: tuple[str, str], body: bytes) -> None:
    address, token = server
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    answer = httpx2.post(address, content=body, headers=headers, trust_env=False)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32700, -32600, -32602)


@pytest.mark.microvm
async def test_the_official_client(server: tuple[str, str]) -> None:
    address, token = server
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False) as http,
        streamable_http_client(address, http_client=http) as (reading, writing, *_),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        answer = await session.call_tool("run_python", {"code": "6 * 7"})
        assert (answer.structured_content or {})["value"] == "42"


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "wcpod", "mcp", "--http", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"wcpod: cannot listen on 127.0.0.1:{port}: Address already in use\n"
