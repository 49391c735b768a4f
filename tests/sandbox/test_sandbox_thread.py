"""The thread that owns a micro-VM, and those that wait for it: signals, cancelling, callbacks, forks."""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from wcpod import AsyncSandbox, HyperlightRuntime, Limits, Sandbox, SandboxPool
from wcpod.exceptions import SandboxClosed, SandboxError

pytestmark = pytest.mark.microvm

LOOP = "while True: pass"


class Raised(Exception):
    """By a signal's handler."""


@contextmanager
def handling(number: signal.Signals) -> Iterator[None]:
    """The signal raises `Raised` in the main thread."""

    def handle(_: int, __: object) -> None:
        raise Raised

    before = signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def later(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Does something on another thread after a while."""
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
@pytest.mark.parametrize(
    "code", [LOOP, "import time\ntime.sleep(60)", "call_tool('slow')"], ids=["loop", "sleep", "tool"]
)
def test_a_signal_s_handler_acts_at_once_and_the_guest_stops(
    slowness: float, number: signal.Signals, code: str
) -> None:
    released = threading.Event()
    with Sandbox(limits=Limits(seconds=60), tools={"slow": lambda: released.wait(30)}) as made:
        made.run("print(1)")
        sent: list[float] = []

        def send() -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), number)

        with handling(number), later(0.3 * slowness, send), pytest.raises(Raised):
            made.run(code)
        assert time.monotonic() - sent[0] < 0.2 * slowness
        released.set()
        assert made.run("print('ok')").stdout == "ok\n"


def test_a_handler_that_does_not_raise_leaves_the_run_alone(slowness: float) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with Sandbox() as made, later(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)):
            code = f"import time\ntime.sleep({0.4 * slowness})\nprint('whole')"
            assert made.run(code).stdout == "whole\n"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_a_run_that_waits_its_turn_hears_signals_too(slowness: float) -> None:
    with Sandbox(limits=Limits(seconds=2 * slowness)) as made, ThreadPoolExecutor(1) as threads:
        first = threads.submit(made.run, LOOP)
        time.sleep(0.1)
        with (
            handling(signal.SIGALRM),
            later(0.2, lambda: os.kill(os.getpid(), signal.SIGALRM)),
            pytest.raises(Raised),
        ):
            begin = time.monotonic()
            made.run("print(1)")
        assert time.monotonic() - begin < 0.2 + 0.2 * slowness
        assert first.result().kind == "timeout"
        assert made.run("print('ok')").stdout == "ok\n"


def test_a_run_waits_for_its_turn_no_longer_than_it_is_to(slowness: float) -> None:
    with Sandbox(limits=Limits(seconds=1.5 * slowness)) as made, ThreadPoolExecutor(1) as threads:
        first = threads.submit(made.run, LOOP)
        time.sleep(0.1 * slowness)
        with pytest.raises(TimeoutError, match=r"the sandbox was in use for 0\.2 s"):
            made.run("print(1)", wait=0.2)
        assert not first.done()


def blocked_run(sandbox: Sandbox, results: list[Any]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    begin = time.monotonic()
    results.append((sandbox.run(LOOP).kind, time.monotonic() - begin))


def test_a_thread_that_blocks_all_signals_keeps_the_limit(slowness: float) -> None:
    results: list[Any] = []
    with Sandbox(limits=Limits(seconds=0.5 * slowness)) as made:
        thread = threading.Thread(target=blocked_run, args=(made, results))
        thread.start()
        thread.join()
    [(kind, took)] = results
    assert kind == "timeout"
    assert took < 1 * slowness

    def make_and_run() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with Sandbox(limits=Limits(seconds=0.5 * slowness)) as own:
            results.append(own.run(LOOP).kind)

    thread = threading.Thread(target=make_and_run)
    thread.start()
    thread.join()
    assert results[1] == "timeout"


@pytest.mark.parametrize("action", ["SIG_IGN", "SIG_DFL"])
def test_a_process_without_the_interrupt_s_handler_is_told_before_the_run(action: str) -> None:
    code = f"""
        import signal
        from wcpod import Limits, Sandbox
        sandbox = Sandbox(limits=Limits(seconds=1))
        signal.signal(signal.SIGRTMIN, signal.{action})
        try:
            sandbox.run("while True: pass")
        except Exception as error:
            print(type(error).__name__, error)
        print(Sandbox(limits=Limits(seconds=0.2)).run("while True: pass").kind)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("SandboxError a run could not be stopped: signal "), done
    assert done.stdout.endswith("\ntimeout\n")


async def test_many_waiting_runs_hold_no_thread_of_the_loop(slowness: float) -> None:
    async with await AsyncSandbox.create(limits=Limits(seconds=30)) as sandbox:
        waiting = [asyncio.create_task(sandbox.run("import time\ntime.sleep(0.5)")) for _ in range(50)]
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        assert await asyncio.to_thread(lambda: 1) == 1
        assert time.monotonic() - begin < 0.2 * slowness
        begin = time.monotonic()
        for task in waiting:
            task.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        assert time.monotonic() - begin < 0.5 * slowness
        assert (await sandbox.run("print('ok')")).stdout == "ok\n"


async def test_a_run_that_waits_its_turn_is_cancelled_at_once(slowness: float) -> None:
    async with await AsyncSandbox.create(limits=Limits(seconds=4 * slowness)) as sandbox:
        first = asyncio.create_task(sandbox.run(LOOP))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(sandbox.run("print(1)"))
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert time.monotonic() - begin < 0.2 * slowness
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.run("print(1)"), 0.2)
        with pytest.raises(TimeoutError, match=r"the sandbox was in use for 0\.2 s"):
            await sandbox.run("print(1)", wait=0.2)
        assert not first.done()
        first.cancel()


async def test_closing_does_not_wait_for_the_limit(slowness: float) -> None:
    sandbox = await AsyncSandbox.create(limits=Limits(seconds=60))
    running = asyncio.create_task(sandbox.run(LOOP))
    await asyncio.sleep(0.2)
    waiting = asyncio.create_task(sandbox.run("print(1)"))
    await asyncio.sleep(0.05)
    begin = time.monotonic()
    await sandbox.close()
    assert time.monotonic() - begin < 0.5 * slowness
    assert (await running).kind == "cancelled"
    with pytest.raises(SandboxClosed):
        await waiting


async def test_an_async_tool_runs_in_the_caller_s_loop() -> None:
    lock = asyncio.Lock()
    await lock.acquire()
    loop = asyncio.get_running_loop()

    async def locked() -> bool:
        async with lock:
            return asyncio.get_running_loop() is loop

    async with await AsyncSandbox.create(tools={"locked": locked}) as sandbox:
        task = asyncio.create_task(sandbox.run("print(call_tool('locked'))"))
        await asyncio.sleep(0.1)
        lock.release()
        assert (await task).stdout == "True\n"


@pytest.mark.parametrize("where", ["on_output", "on_call", "tool"])
def test_callbacks_may_close_and_are_refused_what_would_wait_for_itself(slowness: float, where: str) -> None:
    refused: list[str] = []

    def act(*_: object) -> None:
        for attempt in (lambda: made.run("1"), lambda: made.snapshot(of_last_run=True), made.snapshot):
            with pytest.raises(SandboxError, match="would wait for itself") as error:
                attempt()
            refused.append(str(error.value).split(" was")[0])
        made.close()

    tools = {"act": act if where == "tool" else lambda: 1}
    made = Sandbox(limits=Limits(seconds=60), tools=tools)
    begin = time.monotonic()
    options: Any = {} if where == "tool" else {where: act}
    result = made.run("print('before', flush=True)\ncall_tool('act')\nwhile True: pass", **options)
    assert result.kind == "cancelled"
    assert time.monotonic() - begin < 2 * slowness
    assert refused == ["run()", "snapshot()", "snapshot()"]
    with pytest.raises(SandboxClosed):
        made.run("1")


@pytest.mark.parametrize("where", ["on_output", "on_call"])
def test_a_callback_that_hangs_is_left_behind(slowness: float, where: str) -> None:
    released = threading.Event()
    with Sandbox(limits=Limits(seconds=0.5 * slowness), tools={"one": lambda: 1}) as made:
        begin = time.monotonic()
        options: Any = {where: lambda *_: released.wait(20)}
        result = made.run("print('x', flush=True)\ncall_tool('one')\nwhile True: pass", **options)
        assert result.kind == "timeout"
        assert time.monotonic() - begin < (0.5 + 0.5) * slowness
        released.set()
        assert made.run("print('ok')").stdout == "ok\n"


def test_a_tool_that_was_left_behind_does_not_abort_the_process() -> None:
    code = """
        import time
        from wcpod import Limits, Sandbox
        def tool():
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                time.sleep(0.01)
                sum(range(1000))
        def listen(*_):
            tool()
        sandbox = Sandbox(limits=Limits(seconds=0.2), tools={"tool": tool})
        print(sandbox.run("call_tool('tool')").kind)
        print(sandbox.run("print(1, flush=True)\\nwhile True: pass", on_output=listen).kind)
        print(sandbox.run("call_tool('tool')").kind)
    """
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", "timeout\ntimeout\ntimeout\n")


def test_a_host_call_is_counted_also_when_its_run_is_cancelled(slowness: float) -> None:
    released = threading.Event()

    async def cancelled() -> None:
        task = asyncio.create_task(runtime.execute_async("call_tool('slow')", agent="A"))
        await asyncio.sleep(0.3 * slowness)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with HyperlightRuntime(tools={"slow": lambda: released.wait(20)}) as runtime:
        asyncio.run(cancelled())
        assert runtime.host_call_counts == {"A": {"slow": 1}}
        released.set()


FORKS = """
import os, sys, threading, time
from wcpod import Limits, Sandbox

stop = False

def churn():
    while not stop:
        with Sandbox(limits=Limits(seconds=0.05)) as made:
            made.run("while True: pass")

threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads:
    thread.start()
bad = 0
for number in range(int(sys.argv[1])):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Sandbox() as own:
                code = 0 if own.run("print('child')").stdout == "child\\n" else 2
        except BaseException as error:
            os.write(2, repr(error).encode())
        os._exit(code)
    bad += os.waitpid(child, 0)[1] != 0
stop = True
for thread in threads:
    thread.join()
print(bad)
"""


def test_children_of_a_busy_process_make_sandboxes_of_their_own() -> None:
    with Sandbox():  # the clean state is kept, so that no child has to boot
        done = subprocess.run([sys.executable, "-c", FORKS, "15"], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_a_file_mapped_to_look_like_scratch_changes_nothing(tmp_path: Path, slowness: float) -> None:
    size = (96 + 128) << 20
    path = tmp_path / "alike"
    with path.open("wb") as file:
        file.truncate(size - 8)
        file.seek(size - 8)
        file.write(struct.pack("<Q", size))
    with Sandbox(limits=Limits(seconds=0.2 * slowness)) as made, path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        with Sandbox() as another:
            assert another.run("print('ok')").stdout == "ok\n"
        assert made.run(LOOP).kind == "timeout"
        assert made.run("print('ok')", limits=Limits()).stdout == "ok\n"
        mapped.close()


def test_threads_that_make_stop_and_drop_sandboxes_see_no_error(slowness: float) -> None:
    errors: list[str] = []
    end = time.monotonic() + 3

    def churn(number: int) -> None:
        try:
            while time.monotonic() < end:
                with Sandbox(snapshot=clean, limits=Limits(seconds=0.01 * (number % 3 + 1))) as made:
                    made.run(LOOP)
                    result = made.run("print(2)", limits=Limits(seconds=30 * slowness))
                    assert result.stdout == "2\n", result
        except BaseException as error:
            errors.append(repr(error))

    with Sandbox() as base:
        clean = base.snapshot()
        threads = [threading.Thread(target=churn, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_pool_gives_out_a_free_sandbox_while_another_is_given_back(slowness: float) -> None:
    with SandboxPool(2, limits=Limits(seconds=2 * slowness)) as pool, ThreadPoolExecutor(1) as threads:
        with pool.sandbox() as first:
            late = threads.submit(first.run, LOOP)
            time.sleep(0.1)
        begin = time.monotonic()
        giving = threading.Thread(target=pool.sandbox(1.0).__enter__)
        giving.start()
        giving.join()
        assert time.monotonic() - begin < 1 * slowness
        assert late.result().kind == "timeout"


@pytest.mark.microvm
def test_a_free_sandbox_needs_no_wait(sandbox: Sandbox) -> None:
    # Its thread sleeps then, and needs a moment to wake.
    assert {sandbox.run("print(1)", wait=0).stdout for _ in range(30)} == {"1\n"}


@pytest.mark.microvm
async def test_a_free_sandbox_needs_no_wait_in_a_loop_either() -> None:
    async with await AsyncSandbox.create() as box:
        assert {(await box.run("print(1)", wait=0)).stdout for _ in range(30)} == {"1\n"}


@pytest.mark.microvm
async def test_a_run_that_is_over_leaves_no_timer_behind() -> None:
    box = await AsyncSandbox.create()
    await box.run("print(1)", wait=3600)
    core = weakref.ref(box._sandbox)
    await box.close()
    del box
    gc.collect()
    assert core() is None


@pytest.mark.microvm
async def test_what_a_tool_started_may_run_code_once_the_run_is_over() -> None:
    started: list[asyncio.Task[str]] = []

    async def afterwards() -> str:
        await over.wait()
        return (await box.run("print('afterwards')")).stdout

    async def start() -> None:
        started.append(asyncio.ensure_future(afterwards()))

    over = asyncio.Event()
    async with await AsyncSandbox.create(tools=[start]) as box:
        assert (await box.run("call_tool('start')")).ok
        over.set()
        assert await started[0] == "afterwards\n"


@pytest.mark.microvm
def test_the_end_of_a_child_does_not_wait_for_a_lock_of_the_parent_s(slowness: float) -> None:
    code = """
        import os, sys, threading
        from wcpod import Sandbox
        sandbox = Sandbox()
        sandbox._lock.acquire()  # as another thread may have, at the moment of a fork
        child = os.fork()
        if child == 0:
            sys.exit(0)
        sandbox._lock.release()
        print(os.waitpid(child, 0)[1])
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=30 * slowness
    )
    assert (ended.stdout, ended.stderr) == ("0\n", "")
