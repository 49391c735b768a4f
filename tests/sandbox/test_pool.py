"""A pool of sandboxes of one snapshot."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from wcpod import AsyncSandboxPool, Limits, SandboxPool
from wcpod.exceptions import SandboxClosed


@pytest.mark.microvm
def test_runs_side_by_side(slowness: float) -> None:
    with SandboxPool(3, limits=Limits(seconds=20 * slowness)) as pool, ThreadPoolExecutor(6) as threads:
        outputs = list(threads.map(lambda number: pool.run(f"print({number})").stdout, range(30)))
    assert outputs == [f"{number}\n" for number in range(30)]


@pytest.mark.microvm
def test_a_borrower_waits_for_one_and_gives_up_in_time() -> None:
    with SandboxPool(1) as pool:
        with pool.sandbox() as lent:
            assert lent.run("print('ok')").stdout == "ok\n"
            with pytest.raises(TimeoutError, match=r"all 1 sandboxes of the pool were in use for 0\.05 s"):
                pool.sandbox(0.05).__enter__()
        with pool.sandbox(0.05) as lent:
            assert lent.run("print('ok')").stdout == "ok\n"


@pytest.mark.microvm
def test_what_a_borrower_made_its_base_is_not_passed_on() -> None:
    with SandboxPool(1) as pool:
        with pool.sandbox() as lent:
            lent.run("open('/tmp/secret', 'w').write('x')")
            lent.restore(lent.snapshot(of_last_run=True))
        assert pool.run("import os\nprint(os.path.exists('/tmp/secret'))").stdout == "False\n"


@pytest.mark.microvm
def test_a_closed_pool_says_so_to_whoever_waits() -> None:
    pool = SandboxPool(1)
    errors: list[Exception] = []

    def wait() -> None:
        try:
            pool.run("print(1)")
        except SandboxClosed as error:
            errors.append(error)

    with pool.sandbox():
        thread = threading.Thread(target=wait)
        thread.start()
        pool.close()
        thread.join()
    assert [str(error) for error in errors] == ["this pool was closed"]


def test_a_size_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a size of at least 1, not 0"):
        SandboxPool(0)


@pytest.mark.microvm
def test_a_place_is_not_lost_where_giving_back_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with SandboxPool(1) as pool:
        interrupted = pool.sandbox()
        lent = interrupted.__enter__()

        def interrupt(_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(lent, "restore", interrupt)
            interrupted.__exit__(None, None, None)
        assert lent.state == "destroyed"
        assert pool.run("print('ok')", wait=20).stdout == "ok\n"


@pytest.mark.microvm
async def test_a_turn_is_passed_on_by_whoever_is_cancelled_as_it_comes() -> None:
    async with await AsyncSandboxPool.create(1) as pool:
        lending = pool.sandbox()
        await lending.__aenter__()
        first, second = [asyncio.ensure_future(pool.run("print('ok')")) for _ in range(2)]
        while len(pool._waiting) < 2:
            await asyncio.sleep(0)
        # The turn comes and the task is cancelled before it can go on.
        await pool._give_back(pool._all[0])
        first.cancel()
        assert (await asyncio.wait_for(second, 20)).stdout == "ok\n"


@pytest.mark.microvm
def test_a_borrower_may_wait_for_ever_or_not_at_all() -> None:
    with SandboxPool(1) as pool:
        assert pool.run("print('ok')", wait=0).stdout == "ok\n"
        lending = pool.sandbox()
        lending.__enter__()
        timer = threading.Timer(0.2, lending.__exit__, (None, None, None))
        timer.start()
        assert pool.run("print('ok')", wait=math.inf).stdout == "ok\n"
        timer.join()


@pytest.mark.microvm
async def test_a_borrower_in_a_loop_may_wait_for_ever_or_not_at_all() -> None:
    async with await AsyncSandboxPool.create(1) as pool:
        assert (await pool.run("print('ok')", wait=0)).stdout == "ok\n"
        waiting = [asyncio.ensure_future(pool.run("print('ok')", wait=math.inf)) for _ in range(2)]
        assert [result.stdout for result in await asyncio.gather(*waiting)] == ["ok\n", "ok\n"]
        lending = pool.sandbox()
        await lending.__aenter__()
        with pytest.raises(TimeoutError, match=r"all 1 sandboxes of the pool were in use for 0 s"):
            await pool.run("print('ok')", wait=0)
        await lending.__aexit__(None, None, None)
