"""The server on standard input and output, one message a line.

The protocol has descriptors of its own. 0, 1 and 2 lead elsewhere while it runs, so that nothing that a library, the
hypervisor or a guest prints can reach the client as a message, and no client that leaves standard error unread can hold
the server up.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from wcpod.mcp_server import jsonrpc

_FAREWELL_SECONDS = 1.0
"""How long requests that were read before the client closed its end may still be answered."""
_ENDING_SECONDS = 3.0
"""How long the server may take to end."""


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes its end, SIGINT or SIGTERM."""
    with _private_descriptors() as (reading, writing):
        asyncio.run(_serve(server, reading, writing))


async def _serve(server: Server[Any], reading: int, writing: int) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)

    async def converse() -> None:
        async with _messages(reading, writing) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    talk = asyncio.ensure_future(converse())
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait([talk, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if stopped.is_set():
        talk.cancel()
        await asyncio.wait([talk], timeout=_ENDING_SECONDS)
    else:
        await talk


_Incoming: TypeAlias = SessionMessage | Exception  # as the library types it; no exception is ever sent


@contextlib.asynccontextmanager
async def _messages(
    reading: int, writing: int
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[_Incoming], MemoryObjectSendStream[SessionMessage]]]:
    """The client's messages, and a way to send some. Threads do the blocking calls, and nobody waits for them."""
    to_server, incoming = anyio.create_memory_object_stream[_Incoming](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    conversation = _Conversation(writing)

    async def read() -> None:
        lines = _Lines(reading)
        async with to_server:
            while (line := await lines.next()) is not None:
                if line.strip():
                    await conversation.receive(line, to_server)
            await conversation.all_answered(_FAREWELL_SECONDS)

    async def write() -> None:
        async with from_server:
            async for item in from_server:
                await conversation.send(item.message)

    tasks = [asyncio.ensure_future(read()), asyncio.ensure_future(write())]
    try:
        yield incoming, outgoing
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_ENDING_SECONDS)


class _Conversation:
    """Both directions: lines in, lines out, and which requests wait for an answer."""

    def __init__(self, writing: int) -> None:
        self._writing = writing
        self._lock = asyncio.Lock()
        self._open: set[jsonrpc.Id] = set()
        self._none_open = asyncio.Event()

    async def receive(self, line: bytes, to_server: MemoryObjectSendStream[_Incoming]) -> None:
        try:
            message = jsonrpc.read_message(line)
        except jsonrpc.Malformed as malformed:
            await self.send(malformed.answer)
            return
        if (request := jsonrpc.request_id(message)) is not None:
            self._open.add(request)
        await to_server.send(SessionMessage(message))

    async def send(self, message: JSONRPCMessage) -> None:
        line = jsonrpc.write_message(message)
        async with self._lock:
            await _in_daemon(lambda: _write_all(self._writing, line))
        self._open.discard(jsonrpc.answered_id(message))
        if not self._open:
            self._none_open.set()

    async def all_answered(self, seconds: float) -> None:
        self._none_open.clear()
        if self._open:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._none_open.wait(), seconds)


class _Lines:
    """The lines of a descriptor, each read when it is asked for."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb", closefd=False)

    async def next(self) -> bytes | None:
        """The next line; of one that is too long, its begin."""
        line = await _in_daemon(self._read)
        return line or None

    def _read(self) -> bytes:
        try:
            line = rest = self._file.readline(jsonrpc.LINE_BYTES + 1)
            while len(rest) > jsonrpc.LINE_BYTES and not rest.endswith(b"\n"):
                rest = self._file.readline(jsonrpc.LINE_BYTES + 1)
        except OSError:
            return b""
        return line


async def _in_daemon(call: Callable[[], Any]) -> Any:
    """Do a blocking call on a thread that nobody waits for when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def finish(result: Any) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = call()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, result)

    threading.Thread(target=run, daemon=True).start()
    return await done


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    with contextlib.suppress(OSError):  # the client is gone, and its end of file ends the server
        while view:
            view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def _private_descriptors() -> Iterator[tuple[int, int]]:
    """Descriptors for the protocol. Meanwhile 0 leads to the null device, and 1 and 2 to a thread that never blocks."""
    reading, writing, errors = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1, 2))
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    end, entry = os.pipe2(os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(entry, 1)
    os.dup2(entry, 2)
    os.close(null)
    os.close(entry)
    drain = threading.Thread(target=_drain, args=(end, errors), daemon=True)
    drain.start()
    try:
        yield reading, writing
    finally:
        os.dup2(writing, 1)
        os.dup2(errors, 2)
        drain.join(timeout=_ENDING_SECONDS)


def _drain(source: int, target: int) -> None:
    """Pass on what is printed; drop it while the target takes none."""
    ready = select.poll()
    ready.register(target, select.POLLOUT)
    with contextlib.suppress(OSError):
        while data := os.read(source, select.PIPE_BUF):
            if any(event & select.POLLOUT for _, event in ready.poll(0)):
                with contextlib.suppress(OSError):
                    os.write(target, data)
