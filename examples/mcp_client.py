"""Talk to `wcpod mcp` with the official client of the Model Context Protocol.

It prints:

    create_sandbox, destroy_sandbox, execute_in_sandbox
    exit code 0 (ok)
    <stdout>
    hello
    </stdout>
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

SERVER = StdioServerParameters(command=sys.executable, args=["-m", "wcpod", "mcp", "--limits", "seconds=5"])


async def main() -> None:
    async with stdio_client(SERVER) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        print(", ".join(sorted(tool.name for tool in (await session.list_tools()).tools)))
        made = await session.call_tool("create_sandbox", {})
        assert made.structuredContent is not None
        sandbox = made.structuredContent["sandbox_id"]
        answer = await session.call_tool("execute_in_sandbox", {"sandbox_id": sandbox, "code": "print('hello')"})
        print("".join(block.text for block in answer.content if isinstance(block, TextContent)))
        await session.call_tool("destroy_sandbox", {"sandbox_id": sandbox})


asyncio.run(main())
