"""An agent of Microsoft Agent Framework whose one tool is `execute_code`, with a tool of the host behind it.

It asks the OpenAI-compatible server at $OPENAI_BASE_URL. With a model that calls `execute_code` once it prints:

    Three teas cost 7.5.
    {'accountant': {'execute_code': 1, 'price': 1}}
"""

import asyncio
import os

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from wcpod import HyperlightRuntime
from wcpod.codeact import CodeActProvider, ToolCallCounts, make_call_tool_counter, make_tool_call_recorder


def price(item: str) -> float:
    return {"tea": 2.5, "cake": 4.0}[item]


async def main() -> None:
    counts = ToolCallCounts()
    with HyperlightRuntime(tools={"price": price}) as runtime:
        codeact = CodeActProvider(
            runtime,
            agent="accountant",
            tools={"price": "price(item): what an item costs, in euros."},
            on_call=make_call_tool_counter(counts, "accountant"),
        )
        agent = Agent(
            OpenAIChatCompletionClient(model=os.environ.get("OPENAI_MODEL", "gpt-5")),
            name="accountant",
            instructions="Calculate with code.",
            context_providers=[codeact],
            middleware=[make_tool_call_recorder(counts, "accountant")],
        )
        print((await agent.run("What do three teas cost?")).text)
    print(counts.as_dict())


asyncio.run(main())
