"""A program of `agent-framework-hyperlight` on wcpod: its import is changed, the rest is as it was.

It asks the OpenAI-compatible server at $OPENAI_BASE_URL. With a model that calls `execute_code` once it prints:

    execute_code
    price {'item': 'tea'}
    Three teas cost 7.5.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Annotated

from agent_framework import Agent, FunctionInvocationContext, function_middleware, tool
from agent_framework.openai import OpenAIChatCompletionClient

from wcpod.agent_framework import HyperlightCodeActProvider  # was: from agent_framework.hyperlight


@tool(approval_mode="never_require")
def price(item: Annotated[str, "What to buy."]) -> float:
    """What an item costs, in euros."""
    return {"tea": 2.5, "cake": 4.0}[item]


@function_middleware
async def show_calls(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Sees calls of the model, and on wcpod those that its code makes too."""
    name = context.function.name
    print(name if name == "execute_code" else f"{name} {context.arguments}")
    await call_next()


async def main() -> None:
    codeact = HyperlightCodeActProvider(tools=[price], approval_mode="never_require")
    agent = Agent(
        OpenAIChatCompletionClient(model=os.environ.get("OPENAI_MODEL", "gpt-5")),
        name="accountant",
        instructions="Calculate with code.",
        context_providers=[codeact],
        middleware=[show_calls],
    )
    print((await agent.run("What do three teas cost?")).text)


asyncio.run(main())
