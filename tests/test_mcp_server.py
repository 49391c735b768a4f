"""`wcpod mcp`, spoken to with the official client: the three tools, limits, and what becomes of an idle sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from click.testing import CliRunner

from wcpod import Limits
from wcpod.cli import cli
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import CallToolResult, TextContent

from wcpod.mcp_server import SandboxTools, Tenancy, Terms


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
    assert not answer.isError, answer.content
    assert answer.structuredContent is not None
    return answer.structuredContent


def text(answer: CallToolResult) -> str:
    """The one block of text of an answer."""
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


async def refusal(session: ClientSession, tool: str, **arguments: Any) -> str:
    """What a tool says that refuses."""
    answer = await session.call_tool(tool, arguments)
    assert answer.isError
    return text(answer)


@pytest.mark.microvm
async def test_the_three_tools() -> None:
    async with client() as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert sorted(tools) == ["create_sandbox", "destroy_sandbox", "execute_in_sandbox"]
        assert tools["execute_in_sandbox"].inputSchema["required"] == ["sandbox_id", "code"]
        assert tools["execute_in_sandbox"].outputSchema is not None

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
        result = dict(answer.structuredContent or {})
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
                f"Error executing tool {tool}: there is no sandbox '{name}': never made, destroyed, or idle for more "
                "than 600 seconds"
            )


@pytest.mark.microvm
async def test_the_limits_of_the_server_and_of_the_client() -> None:
    async with client("--limits", "seconds=5,memory_mib=64", "--sandboxes", "1") as session:
        assert await refusal(session, "create_sandbox", seconds=6) == (
            "Error executing tool create_sandbox: seconds may be at most 5 on this server, not 6"
        )
        assert "memory_mib" in await refusal(session, "create_sandbox", memory_mib=1)
        made = await ask(session, "create_sandbox", seconds=1)
        assert (made["seconds"], made["memory_mib"]) == (1.0, 64)
        assert await refusal(session, "create_sandbox") == (
            "Error executing tool create_sandbox: there are 1 sandboxes already; destroy one first"
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


@pytest.mark.microvm
async def test_destroying_stops_what_runs() -> None:
    tools = SandboxTools(Terms())
    name = (await tools.create_sandbox()).sandbox_id
    running = asyncio.create_task(tools.execute_in_sandbox(name, "while True: pass"))
    await asyncio.sleep(0.3)
    await tools.destroy_sandbox(name)
    assert (await running).structuredContent["kind"] == "cancelled"  # type: ignore[index]


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
    with pytest.raises(ToolError):
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
    CliRunner().invoke(cli, ["mcp", "--contact", "ops@example.org"], prog_name="wcpod")
    create = AsyncMock()
    monkeypatch.setattr("wcpod.mcp_server.AsyncSandbox.create", create)
    await Tenancy(served[0]).create(Limits())
    assert create.call_args.kwargs["contact"] == "ops@example.org"


def test_help_teaches_by_example() -> None:
    assert "Example:" in CliRunner().invoke(cli, ["mcp", "--help"]).output
