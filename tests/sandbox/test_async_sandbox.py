"""The sandbox under asyncio: awaited, and cancelled for real."""

from __future__ import annotations

import asyncio
import time

import pytest

from wcpod import AsyncSandbox, Limits

pytestmark = pytest.mark.microvm


async def test_a_run_is_awaited() -> None:
    async with await AsyncSandbox.create() as sandbox:
        result, _ = await asyncio.gather(sandbox.run("print(1)"), asyncio.sleep(0))
        assert result.stdout == "1\n"


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import time\ntime.sleep(60)", "call_tool('slow')", "9**9**9"],
    ids=["loop", "sleep", "tool", "c-loop"],
)
async def test_cancelling_stops_the_guest(slowness: float, code: str) -> None:
    async with await AsyncSandbox.create(
        limits=Limits(seconds=60), tools={"slow": lambda: time.sleep(slowness)}
    ) as sandbox:
        task = asyncio.create_task(sandbox.run(code))
        await asyncio.sleep(0.3 * slowness)
        begin = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begin < 0.2 * slowness
        assert (await sandbox.run("print('ok')")).stdout == "ok\n"
