"""The sandbox for asyncio: cancellation stops the guest.

It prints:

    ok 499500
    stopped
    still here
"""

import asyncio

from wcpod import AsyncSandbox


async def main() -> None:
    async with await AsyncSandbox.create() as sandbox:
        result = await sandbox.run("sum(range(1000))")
        print(result.kind, result.value)

        try:
            await asyncio.wait_for(sandbox.run("while True: pass"), timeout=0.5)
        except asyncio.TimeoutError:
            print("stopped")

        result = await sandbox.run("print('still here')")
        print(result.stdout, end="")


asyncio.run(main())
