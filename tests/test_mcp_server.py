"""`wcpod mcp`, spoken to with the official client: the tools, limits, files, progress, and idle sandboxes."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from click.testing import CliRunner

import wcpod
from wcpod import Limits
from wcpod.cli import cli
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from wcpod.mcp_server.tenancy import Refused, Tenancy, Terms
from wcpod.mcp_server.tools import CreateSandbox, DestroySandbox, ExecuteInSandbox, SandboxTools


@asynccontextmanager
async def client(*options: str) -> AsyncIterator[ClientSession]:
    """A session with a server of its own."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "wcpod", "mcp", *options])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


async def ask(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that succeeds."""
    answer = await session.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    structured: dict[str, Any] | None = answer.structured_content
    assert structured is not None
    return structured


def text(answer: CallToolResult) -> str:
    """The one block of text of an answer."""
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


async def refusal(session: ClientSession, tool: str, **arguments: Any) -> str:
    """What a tool says that refuses."""
    answer = await session.call_tool(tool, arguments)
    assert answer.is_error
    return text(answer)


@pytest.mark.microvm
async def test_sandboxes_with_an_id() -> None:
    async with client() as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert sorted(tools) == ["create_sandbox", "destroy_sandbox", "execute_in_sandbox", "run_python"]
        assert tools["execute_in_sandbox"].input_schema["required"] == ["sandbox_id", "code"]
        assert tools["execute_in_sandbox"].output_schema is not None

        made = await ask(session, "create_sandbox")
        name = made.pop("sandbox_id")
        assert made == {
            "isolation": "micro-vm",
            **dataclasses.asdict(Limits()),
            "hosts": [],
            "idle_seconds": 600.0,
        }
        answer = await session.call_tool(
            "execute_in_sandbox", {"sandbox_id": name, "code": "kept = 1\nprint('</stdout> 世')\n6 * 7"}
        )
        assert text(answer) == "exit code 0 (ok)\n<stdout>\n&lt;/stdout> 世\n</stdout>\n<value>\n42\n</value>"
        result = dict(answer.structured_content or {})
        assert 0 < result.pop("seconds") < 30
        assert result == {
            "kind": "ok",
            "exit_code": 0,
            "stdout": "</stdout> 世\n",
            "stderr": "",
            "value": "42",
            "files": {},
            "host_calls": [],
            "truncated": False,
        }
        failed = await ask(session, "execute_in_sandbox", sandbox_id=name, code="print(kept)")
        assert failed["kind"] == "error"
        assert failed["stderr"].endswith("NameError: name 'kept' is not defined\n")

        assert await ask(session, "destroy_sandbox", sandbox_id=name) == {"sandbox_id": name}
        for tool, more in (("execute_in_sandbox", {"code": "1"}), ("destroy_sandbox", {})):
            assert await refusal(session, tool, sandbox_id=name, **more) == (
                f"{tool}: there is no sandbox '{name}': never made, destroyed, or idle for more than 600 seconds"
            )


@pytest.mark.microvm
async def test_the_limits_of_the_server_and_of_the_client() -> None:
    async with client("--limits", "seconds=5,memory_mib=64", "--sandboxes", "1") as session:
        assert await refusal(session, "create_sandbox", seconds=6) == (
            "create_sandbox: seconds may be at most 5 on this server, not 6"
        )
        assert "memory_mib" in await refusal(session, "create_sandbox", memory_mib=1)
        made = await ask(session, "create_sandbox", seconds=1)
        assert (made["seconds"], made["memory_mib"]) == (1.0, 64)
        assert await refusal(session, "create_sandbox") == (
            "create_sandbox: there are 1 sandboxes already; destroy one first"
        )
        result = await ask(session, "execute_in_sandbox", sandbox_id=made["sandbox_id"], code="while True: pass")
        assert result["kind"] == "timeout"


@pytest.mark.microvm
async def test_the_hosts_that_code_may_read() -> None:
    page = "https://www.bbc.com/sport/football/world-cup"
    code = f"print(call_tool('fetch_url', url='{page}')['STATUS'])"
    async with client("--allow-host", "www.bbc.com", "--archive", str(SAMPLE_PAGES)) as session:
        made = await ask(session, "create_sandbox")
        assert made["hosts"] == ["www.bbc.com"]
        result = await ask(session, "execute_in_sandbox", sandbox_id=made["sandbox_id"], code=code)
        assert result["stdout"] == "ok\n"
        assert result["host_calls"] == [{"name": "fetch_url", "status": "ok", "url": page, "reason": None}]
    async with client() as session:
        made = await ask(session, "create_sandbox")
        result = await ask(session, "execute_in_sandbox", sandbox_id=made["sandbox_id"], code=code)
        assert result["kind"] == "error"
        assert "this sandbox has no network" in result["stderr"]


@pytest.mark.microvm
async def test_an_idle_sandbox_is_destroyed_and_a_busy_one_is_not() -> None:
    async with client("--idle", "1.5") as session:
        idle, busy = [(await ask(session, "create_sandbox"))["sandbox_id"] for _ in range(2)]
        code = "import time\ntime.sleep(3)\nprint('done')"
        assert (await ask(session, "execute_in_sandbox", sandbox_id=busy, code=code))["stdout"] == "done\n"
        assert "there is no sandbox" in await refusal(session, "execute_in_sandbox", sandbox_id=idle, code="1")


async def silent(_progress: float, _total: float | None, _message: str) -> None:
    """A client that does not ask for progress."""


@pytest.mark.microvm
async def test_destroying_stops_what_runs() -> None:
    tools = SandboxTools(Terms())
    made = await tools.create_sandbox(CreateSandbox(), silent)
    name = (made.structured_content or {})["sandbox_id"]
    asked = ExecuteInSandbox(sandbox_id=name, code="while True: pass")
    running = asyncio.create_task(tools.execute_in_sandbox(asked, silent))
    await asyncio.sleep(0.3)
    await tools.destroy_sandbox(DestroySandbox(sandbox_id=name), silent)
    assert ((await running).structured_content or {})["kind"] == "cancelled"


async def test_it_says_who_it_is() -> None:
    async with client() as session:
        info = session.server_info
        assert info is not None
        assert (info.name, info.title, info.version) == ("wcpod", "wcpod", wcpod.__version__)


async def test_every_tool_has_a_title_annotations_and_closed_arguments() -> None:
    for hosts in ((), ("www.bbc.com",)):
        for tool in SandboxTools(Terms(hosts=hosts)).listed():
            assert tool.annotations is not None
            assert tool.title == tool.annotations.title
            assert tool.input_schema["additionalProperties"] is False
            assert tool.annotations.read_only_hint is False
            assert tool.annotations.destructive_hint is (tool.name == "destroy_sandbox")
            runs_code = tool.name in ("run_python", "execute_in_sandbox")
            assert tool.annotations.open_world_hint is (runs_code and bool(hosts))


@pytest.mark.microvm
async def test_run_python_needs_no_sandbox_and_keeps_nothing() -> None:
    async with client("--sandboxes", "1") as session:
        first = await ask(session, "run_python", code="kept = 1\nopen('/tmp/left', 'w').close()")
        assert first["kind"] == "ok"
        code = "import os\nprint(os.path.exists('/tmp/left'), 'kept' in globals())"
        many = await asyncio.gather(*(ask(session, "run_python", code=code) for _ in range(3)))
        assert [result["stdout"] for result in many] == ["False False\n"] * 3
        assert (await ask(session, "run_python", code="while True: pass", timeout=0.3))["kind"] == "timeout"
        assert await refusal(session, "run_python", code="1", timeout=31) == (
            "run_python: timeout may be at most 30 on this server, not 31"
        )
        # A sandbox that nobody uses makes room for one with an id, and then there is none to borrow.
        await ask(session, "create_sandbox")
        assert await refusal(session, "run_python", code="1") == (
            "run_python: all 1 sandboxes are taken; destroy one first"
        )


@pytest.mark.microvm
async def test_files_go_in_and_come_out() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(8)
    code = f"""\
import pathlib
text = pathlib.Path('/input/世.txt').read_text()
data = pathlib.Path('/input/data.bin').read_bytes()
out = pathlib.Path('/output')
(out / 'notes.md').write_text(text)
(out / 'data.bin').write_bytes(data)
(out / 'picture.txt').write_bytes({png!r})
(out / 'large.csv').write_text('1,2\\n' * 100_000)
"""
    files = {"世.txt": "été", "data.bin": {"base64": "AP8="}}
    async with client() as session:
        answer = await session.call_tool("run_python", {"code": code, "files": files})
        assert not answer.is_error, answer.content
        content: list[Any] = list(answer.content)
        _, data, large, notes, picture = content
        assert (data.resource.blob, data.resource.mime_type) == ("AP8=", "application/octet-stream")
        assert (notes.resource.text, notes.resource.mime_type) == ("été", "text/markdown")
        assert (picture.type, picture.mime_type, base64.b64decode(picture.data)) == ("image", "image/png", png)
        assert (large.type, large.name, large.size) == ("resource_link", "large.csv", 400_000)
        contents: Any = (await session.read_resource(large.uri)).contents[0]
        assert contents.text == "1,2\n" * 100_000
        assert large.uri in [resource.uri for resource in (await session.list_resources()).resources]
        with pytest.raises(MCPError, match="there is no such file: never written, or older"):
            await session.read_resource("wcpod://output/0/none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"code": "1", "lang": "py"}, "there is no argument 'lang'; there are: code, timeout, files"),
        ({"code": 5}, "code: Input should be a valid string"),
        ({}, "code: Field required"),
        ({"code": "1", "timeout": float("nan")}, "timeout: Input should be greater than 0"),
        ({"code": "1", "files": {"a": {"base64": "?"}}}, "the file 'a' is not base64: "),
    ],
)
async def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    answer = await SandboxTools(Terms()).call("run_python", arguments, silent)
    assert answer.is_error
    assert f"run_python: {message}" in text(answer)


async def test_an_unknown_tool_is_named() -> None:
    async with client() as session:
        with pytest.raises(MCPError, match="there is no tool 'exec'; there are: run_python, create_sandbox"):
            await session.call_tool("exec", {})


@pytest.mark.microvm
async def test_progress_while_code_runs() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with client() as session:
        code = "import time\nprint('x' * 10, flush=True)\ntime.sleep(2)"
        await session.call_tool("run_python", {"code": code}, progress_callback=hear)
    assert len(heard) >= 2
    assert [seconds for seconds, _, _ in heard] == sorted(seconds for seconds, _, _ in heard)
    assert heard[-1][1:] == (30.0, "running; 11 characters printed")


async def test_what_one_client_gave_up_booting_serves_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(**_options: Any) -> Any:
        await asyncio.sleep(0.1)
        return AsyncMock()

    monkeypatch.setattr("wcpod.mcp_server.tenancy.AsyncSandbox.create", create)
    tenancy = Tenancy(Terms(sandboxes=1))
    waiting = asyncio.create_task(tenancy.execute_once("1"))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(tenancy.execute_once("1"), 5)
    await asyncio.wait_for(asyncio.gather(*(tenancy.execute_once("1") for _ in range(5))), 5)


@pytest.mark.microvm
async def test_a_client_that_gives_up_stops_the_guest() -> None:
    tenancy = Tenancy(Terms())
    name = await tenancy.create(Limits(seconds=60))
    waiting = asyncio.create_task(tenancy.execute(name, "while True: pass"))
    await asyncio.sleep(0.3)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    started = time.monotonic()
    assert (await tenancy.execute(name, "print('free')")).stdout == "free\n"
    assert time.monotonic() - started < 30
    await tenancy.close()
    with pytest.raises(Refused):
        await tenancy.execute(name, "1")


def test_a_host_that_is_none() -> None:
    result = CliRunner().invoke(cli, ["mcp", "--allow-host", "*"], prog_name="wcpod")
    assert result.exit_code == 2
    assert "host" in result.output


async def test_the_contact_reaches_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Terms] = []

    def build(terms: Terms) -> MagicMock:
        served.append(terms)
        return MagicMock()

    monkeypatch.setattr("wcpod.mcp_server.build_server", build)
    monkeypatch.setattr("wcpod.mcp_server.stdio.serve_stdio", lambda _server: None)
    CliRunner().invoke(cli, ["mcp", "--contact", "ops@example.org"], prog_name="wcpod")
    create = AsyncMock()
    monkeypatch.setattr("wcpod.mcp_server.tenancy.AsyncSandbox.create", create)
    await Tenancy(served[0]).create(Limits())
    assert create.call_args.kwargs["contact"] == "ops@example.org"


def test_help_teaches_by_example() -> None:
    assert "Example:" in CliRunner().invoke(cli, ["mcp", "--help"]).output
