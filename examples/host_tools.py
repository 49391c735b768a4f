"""Give the code functions of your own: sync or async, typed by their annotations.

It prints:

    7.5 3 tea sold
    TypeError: price(): item must be str, not int
    price: ok
    sell: ok
"""

import asyncio

from wcpod import Sandbox


def price(item: str) -> float:
    return {"tea": 2.5, "cake": 4.0}[item]


async def sell(item: str, count: int = 1) -> str:
    await asyncio.sleep(0.01)
    return f"{count} {item} sold"


with Sandbox(tools={"price": price, "sell": sell}) as sandbox:
    result = sandbox.run("print(call_tool('price', item='tea') * 3, call_tool('sell', item='tea', count=3))")
    print(result.stdout, end="")

    wrong = sandbox.run("call_tool('price', item=3)")
    print(wrong.stderr.splitlines()[-1])

    for call in result.host_calls:
        print(f"{call.name}: {call.status}")
