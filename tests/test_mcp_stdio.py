"""The server on standard input and output, spoken to byte by byte: every request is answered, and it ends when told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from wcpod.mcp_server import jsonrpc
from wcpod.mcp_server.stdio import _private_descriptors

COMMAND = [sys.executable, "-m", "wcpod", "mcp"]


class Client:
    """Sends lines and reads lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask(self.request("initialize", params, number=0))

    def request(self, method: str, params: Any, number: int = 1) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()

    def run_python(self, code: str, number: int = 1) -> bytes:
        return self.request("tools/call", {"name": "run_python", "arguments": {"code": code}}, number)

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, line: bytes) -> dict[str, Any]:
        self.send(line)
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def client(**options: Any) -> Iterator[Client]:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options) as process:
        try:
            yield Client(process)
        finally:
            process.kill()


def ping(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", **members}).encode()


WANTING = [
    (ping(params=[1]), 7, -32600, 'the member "params" must be an object'),
    (b'{"jsonrpc": "2.0", "id": 7}', 7, -32600, 'the member "method" must be a text'),
    (ping(method=5), 7, -32600, 'the member "method" must be a text'),
    (b'{"id": 7, "method": "ping"}', 7, -32600, 'the member "jsonrpc" must be "2.0"'),
    (ping(id=1.5), None, -32600, 'the member "id" must be a number without fraction or a text'),
    (ping(id=None), None, -32600, 'the member "id" must be a number without fraction or a text'),
    (ping(id=True), None, -32600, 'the member "id" must be a number without fraction or a text'),
    (b"[1]", None, -32600, "a message is one object; batches are not part of the protocol"),
    (b"5", None, -32600, "a message is an object"),
    (ping()[:-1] + b', "params": {"x": ' + b"[" * 300 + b"]" * 300 + b"}}", 7, -32600, "nested deeper than 100 levels"),
    (ping()[:-1] + b', "params": {"x": ' + b"[" * 99999 + b"]" * 99999 + b"}}", 7, -32600, "nested deeper than 100"),
    (b'{"x": {"id": 3}, "id": "a\\"b", oops', 'a"b', -32700, "the message is not JSON: Expecting property name"),
    (b"oops", None, -32700, "the message is not JSON: Expecting value"),
]


@pytest.mark.parametrize(("line", "number", "code", "message"), WANTING, ids=range(len(WANTING)))
def test_what_is_no_message_is_answered(line: bytes, number: Any, code: int, message: str) -> None:
    with pytest.raises(jsonrpc.Malformed) as caught:
        jsonrpc.read_message(line)
    answer = caught.value.answer
    assert (answer.id, answer.error.code) == (number, code)
    assert message in answer.error.message


@pytest.mark.parametrize(
    "line",
    [ping(id="\ud83d"), ping(params={"\udfff": ["\ud800x"]}), ping(params={"x": float("nan")}), b'\xff{"id": 7}'[1:]],
    ids=["id", "params", "nan", "short"],
)
def test_odd_text_never_breaks_the_reader(line: bytes) -> None:
    try:
        message = jsonrpc.read_message(line)
    except jsonrpc.Malformed as malformed:
        assert jsonrpc.write_message(malformed.answer).endswith(b"\n")
    else:
        assert "\\ud8" not in json.dumps(message.model_dump())


def test_a_line_without_end_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrpc, "LINE_BYTES", 1000)
    line = ping(params={"x": "y" * 2000})[:1001]
    with pytest.raises(jsonrpc.Malformed, match="the message is longer than 1000 bytes") as caught:
        jsonrpc.read_message(line)
    assert caught.value.answer.id == 7


def test_numbers_of_thousands_of_digits() -> None:
    message = jsonrpc.read_message(ping()[:-1] + b', "params": {"x": ' + b"9" * 5000 + b"}}")
    assert jsonrpc.request_id(message) == 7


@pytest.mark.microvm
def test_half_an_emoji_in_code_runs() -> None:
    with client() as talk:
        answer = talk.ask(talk.run_python("print('a\ud83d')  # \udfff"))
        assert answer["result"]["structuredContent"]["stdout"] == "a\ufffd\n"


def test_after_malformed_lines_the_next_request_is_answered() -> None:
    with client() as talk:
        for line, number, code, _ in WANTING:
            answer = talk.ask(line)
            assert (answer["id"], answer["error"]["code"]) == (number, code)
        assert talk.ask(ping()) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_client_that_does_not_read_standard_error() -> None:
    with client(stderr=subprocess.PIPE) as talk:
        for _ in range(200):
            assert talk.ask(b"x" * 2000)["error"]["code"] == -32700
        assert talk.ask(ping())["result"] == {}


@pytest.mark.microvm
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_ends_it_at_once(number: signal.Signals, busy: bool, slowness: float) -> None:
    with client(stderr=subprocess.PIPE) as talk:
        if busy:
            assert talk.ask(talk.run_python("print(1)"))["result"]["structuredContent"]["kind"] == "ok"
            talk.send(talk.run_python("while True: pass", number=2))
            time.sleep(0.5 * slowness)
        begin = time.monotonic()
        talk.process.send_signal(number)
        assert talk.process.wait(30) == 0
        assert time.monotonic() - begin < 2 * slowness
        assert talk.process.stderr is not None
        assert talk.process.stderr.read() == b""


@pytest.mark.microvm
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_also_when_nobody_reads_its_answers(number: signal.Signals, slowness: float) -> None:
    with client() as talk:
        for request in range(2, 8):
            talk.send(talk.run_python("print('x' * 60_000)", number=request))
        time.sleep(2 * slowness)
        talk.process.send_signal(number)
        assert talk.process.wait(10 * slowness) == 0


@pytest.mark.microvm
def test_requests_before_the_end_of_the_input_are_answered() -> None:
    lines = [ping(), b"oops", ping(id=8)]
    done = subprocess.run(COMMAND, input=b"\n".join(lines), capture_output=True, check=True)
    assert sorted(json.loads(line)["id"] or 0 for line in done.stdout.splitlines()) == [0, 7, 8]


def test_what_others_print_does_not_reach_the_client() -> None:
    """Descriptor 1 is where the hypervisor's library and its debug port write to."""
    program = """
import os, sys
from wcpod.mcp_server.stdio import _private_descriptors
with _private_descriptors() as (reading, writing):
    os.write(1, b"printed\\n")
    print("also printed", flush=True)
    os.write(2, b"complained\\n")
    os.write(writing, b"message\\n")
    os.write(writing, os.read(reading, 100) + os.read(0, 100))
print("after")
"""
    done = subprocess.run([sys.executable, "-c", program], input=b"input\n", capture_output=True, check=True)
    assert done.stdout == b"message\ninput\nafter\n"
    assert done.stderr == b"printed\nalso printed\ncomplained\n"


def test_a_flood_on_standard_error_does_not_block() -> None:
    end, entry = os.pipe()
    kept = os.dup(2)
    os.dup2(entry, 2)
    try:
        with _private_descriptors():
            for _ in range(100):
                os.write(2, bytes(10_000))
    finally:
        os.dup2(kept, 2)
        for descriptor in (end, entry, kept):
            os.close(descriptor)
