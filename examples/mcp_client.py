"""Talk to `wcpod mcp` with the official client of the Model Context Protocol.

It prints:

    create_sandbox, destroy_sandbox, execute_in_sandbox, run_python
    exit code 0 (ok)
    <stdout>
    hello
    </stdout>
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

SERVER = StdioServerParameters(command=sys.executable, args=["-m", "wcpod", "mcp", "--limits", "seconds=5"])


async def main() -> None:
    async with stdio_client(SERVER) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        print(", ".join(sorted(tool.name for tool in (await session.list_tools()).tools)))
        answer = await session.call_tool("run_python", {"code": "print('hello')"})
        print("".join(block.text for block in answer.content if isinstance(block, TextContent)))


asyncio.run(main())
