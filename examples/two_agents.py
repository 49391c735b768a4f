"""Two agents at the same time on one runtime: it runs one of them after the other, each from the clean snapshot.

It asks the OpenAI-compatible server at $OPENAI_BASE_URL. With a model that calls `execute_code` once it prints:

    buyer: Three teas cost 7.5.
    seller: Three teas cost 7.5.
    {'buyer': {'price': 1}, 'seller': {'price': 1}}
"""

import asyncio
import os

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from wcpod import HyperlightRuntime
from wcpod.codeact import CodeActProvider, only_model_tools


async def price(item: str) -> float:
    return {"tea": 2.5, "cake": 4.0}[item]


async def main() -> None:
    with HyperlightRuntime(tools={"price": price}) as runtime:
        agents = [
            Agent(
                OpenAIChatCompletionClient(model=os.environ.get("OPENAI_MODEL", "gpt-5")),
                name=name,
                context_providers=[CodeActProvider(runtime, agent=name, tools={"price": "price(item): its price."})],
                middleware=[only_model_tools],  # fails closed: no other tool, neither offered nor called
            )
            for name in ("buyer", "seller")
        ]
        answers = await asyncio.gather(*(agent.run("What do three teas cost?") for agent in agents))
        for agent, answer in zip(agents, answers, strict=True):
            print(f"{agent.name}: {answer.text}")
        print(dict(sorted(runtime.host_call_counts.items())))


asyncio.run(main())
