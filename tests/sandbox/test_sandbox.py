"""The sandbox: clean state, verdicts, lifetime."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wcpod import HyperlightRuntime, Limits, Sandbox
from wcpod.exceptions import SandboxClosed, SandboxError

pytestmark = pytest.mark.microvm


def test_output_value_and_exit_code(sandbox: Sandbox) -> None:
    result = sandbox.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2")
    assert (result.kind, result.exit_code) == ("ok", 0)
    assert (result.stdout, result.stderr, result.value) == ("out\n", "err\n", "42")
    assert result.ok
    assert result.truncated is None
    assert result.isolation == sandbox.isolation
    assert result.usage.seconds > 0
    assert result.usage.dirtied_pages > 0


def test_a_python_error_is_a_result(sandbox: Sandbox) -> None:
    result = sandbox.run("def f():\n    return 1/0\n\nprint('before')\nf()")
    assert (result.kind, result.exit_code, result.stdout) == ("error", 1, "before\n")
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert "line 5, in <module>" in result.stderr
    assert "    return 1/0\n" in result.stderr
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_a_global_of_one_run_is_gone_in_the_next(sandbox: Sandbox) -> None:
    assert sandbox.run("import builtins\nleft = builtins.left = 1").ok
    result = sandbox.run("import builtins\nprint('left' in globals(), hasattr(builtins, 'left'))")
    assert result.stdout == "False False\n"


def test_deleting_everything_touches_neither_host_nor_next_run(sandbox: Sandbox, tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    sentinel.write_text("here")
    sandbox.run("import shutil\nshutil.rmtree('/', ignore_errors=True)")
    assert sentinel.read_text() == "here"
    assert sandbox.run("import json, statistics\nprint(json.dumps([1]))").stdout == "[1]\n"


def test_no_file_of_the_host_is_visible(sandbox: Sandbox) -> None:
    result = sandbox.run("import os\nprint(os.path.exists('/etc'), os.path.exists('/proc'), dict(os.environ))")
    assert result.stdout == "False False {'HOME': '/tmp'}\n"


def test_an_endless_loop_ends_at_its_limit_and_keeps_its_output(sandbox: Sandbox, slowness: float) -> None:
    limit = 0.5 * slowness
    begin = time.monotonic()
    result = sandbox.run("print('before', end='')\nwhile True: pass", limits=Limits(seconds=limit))
    took = time.monotonic() - begin
    assert (result.kind, result.stdout, result.exit_code) == ("timeout", "before", 1)
    assert limit <= took < limit + 0.5 * slowness
    assert sandbox.run("print('ok')").stdout == "ok\n"


@pytest.mark.parametrize(
    "code", ["import time\ntime.sleep(60)", "9**9**9", "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"]
)
def test_the_limit_also_stops_sleep_and_loops_in_c(sandbox: Sandbox, slowness: float, code: str) -> None:
    limit = 0.3 * slowness
    result = sandbox.run(code, limits=Limits(seconds=limit))
    assert result.kind == "timeout"
    assert result.usage.seconds < limit + 0.5 * slowness


def test_memory_is_told_apart_from_a_claim_of_it(sandbox: Sandbox) -> None:
    real = sandbox.run("a = []\nwhile True: a.append(bytearray(1 << 20))", limits=Limits(memory_mib=64))
    assert real.kind == "memory"
    claimed = sandbox.run("raise MemoryError('memory limit exceeded')")
    assert claimed.kind == "error"
    assert sandbox.run("print(len(bytearray(32 << 20)))").stdout == f"{32 << 20}\n"


def test_a_flood_is_ended(sandbox: Sandbox) -> None:
    result = sandbox.run("while True: print('x' * 4000)", limits=Limits(output_bytes=4096))
    assert result.kind == "output"
    assert result.truncated is not None
    assert len(result.stdout) < 5000


def test_output_is_cut_on_whole_characters(sandbox: Sandbox) -> None:
    result = sandbox.run("print('世' * 10_000, end='')", limits=Limits(output_bytes=1000))
    assert result.truncated is not None
    assert result.truncated.stdout_bytes == 30_000
    assert "\N{REPLACEMENT CHARACTER}" not in result.stdout
    assert result.stdout.startswith("世世")
    assert result.stdout.endswith("世世")
    assert "bytes left out" in result.stdout


def test_inputs_and_files(sandbox: Sandbox) -> None:
    code = "data = open('/input/a.bin', 'rb').read()\nopen('/output/b.bin', 'wb').write(data[::-1])"
    result = sandbox.run(code, inputs={"a.bin": b"\x00\x01\xff"})
    assert result.ok, result.stderr
    assert result.files == {"b.bin": b"\xff\x01\x00"}
    assert sandbox.run("import os\nprint(os.listdir('/input'), os.listdir('/output'))").stdout == "[] []\n"


@pytest.mark.parametrize("name", ["../x", "/x", "", "a//b", "a/./b"])
def test_an_input_name_that_leads_elsewhere_is_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match=r"the input name .* cannot be used"):
        sandbox.run("", inputs={name: b""})


def test_random_values_and_time_are_fresh_after_each_restore(sandbox: Sandbox, slowness: float) -> None:
    values = "random.random(), uuid.uuid4(), secrets.token_hex(8), os.urandom(8).hex()"
    code = f"import random, uuid, secrets, os\nprint({values})"
    rows = [sandbox.run(code).stdout.split() for _ in range(20)]
    assert all(len(set(column)) == len(rows) for column in zip(*rows, strict=True))
    assert abs(float(sandbox.run("import time\nprint(time.time())").stdout) - time.time()) < 2 * slowness


def test_surrogate_pairs_in_the_source_become_characters(sandbox: Sandbox) -> None:
    assert sandbox.run("print('\ud83c\udf78')").stdout == "\N{COCKTAIL GLASS}\n"


def test_code_that_is_too_long_is_refused_before_it_runs(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="the code is too long"):
        sandbox.run("#" * (4 << 20))
    assert sandbox.run("#" * (2 << 20) + "\nprint('ok')").stdout == "ok\n"


def test_limits_that_make_no_sense_are_refused() -> None:
    for arguments in ({"seconds": 0}, {"memory_mib": 1}, {"output_bytes": 0}, {"host_calls": -1}):
        with pytest.raises(ValueError, match=f"Limits.{next(iter(arguments))} must"):
            Limits(**arguments)


FILES_UNTIL_REFUSED = {
    "bytes": "file = open('/tmp/one', 'wb', buffering=0)\nwhile True: held += file.write(bytes(1 << 12))",
    "files": "while True:\n    open(f'/output/{held}', 'w').close()\n    held += 1",
    "open": "files = []\nwhile True:\n    files.append(open('/tmp/one', 'a'))\n    held += 1",
}


@pytest.mark.parametrize(
    ("what", "most", "error"),
    # The code's own file counts too, and so does the name of a file: two pages and one file less than the bounds.
    [
        ("bytes", (24 << 20) - 2 * 4096, "I/O error"),
        ("files", 4095, "No space left on device"),
        ("open", 256, "Out of memory"),
    ],
)
def test_files_are_bounded(sandbox: Sandbox, slowness: float, what: str, most: int, error: str) -> None:
    body = FILES_UNTIL_REFUSED[what].replace("\n", "\n    ")
    code = f"held = 0\ntry:\n    {body}\nexcept OSError as error:\n    print(held, error.strerror)"
    assert sandbox.run(code, limits=Limits(seconds=20 * slowness)).stdout == f"{most} {error}\n"


def test_a_closed_sandbox_says_so() -> None:
    made = Sandbox()
    made.close()
    made.close()
    with pytest.raises(SandboxClosed, match="this sandbox was closed"):
        made.run("print(1)")


def test_closing_cancels_the_run_under_way(slowness: float) -> None:
    made = Sandbox(limits=Limits(seconds=60))
    kinds: list[str] = []
    thread = threading.Thread(target=lambda: kinds.append(made.run("while True: pass").kind))
    thread.start()
    time.sleep(0.2 * slowness)
    begin = time.monotonic()
    made.close()
    thread.join()
    assert time.monotonic() - begin < 1 * slowness
    assert kinds == ["cancelled"]


def test_made_in_one_thread_run_in_others_dropped_in_a_third() -> None:
    made = [Sandbox()]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda number: made[0].run(f"print({number})").stdout, range(20)))
    assert outputs == [f"{number}\n" for number in range(20)]

    def drop() -> None:
        made.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    with Sandbox() as another:
        assert another.run("print('ok')").stdout == "ok\n"


def test_after_a_fork_the_child_is_told_to_make_a_new_one(sandbox: Sandbox) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sandbox.run("print(1)")
            message = "no exception"
        except SandboxError as error:
            message = str(error)
        os.write(writer, message.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"made in another process" in os.read(reader, 1000)
    os.close(reader)
    os.close(writer)
    assert sandbox.run("print('ok')").stdout == "ok\n"


def test_the_gil_is_free_while_the_guest_runs(sandbox: Sandbox) -> None:
    ticks = 0
    thread = threading.Thread(target=lambda: sandbox.run("while True: pass", limits=Limits(seconds=0.5)))
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.01)
    assert ticks > 10


def test_the_runtime_attributes_calls_to_agents(runtime: Callable[..., HyperlightRuntime]) -> None:
    shared = runtime(tools={"add": lambda a, b: a + b})
    assert shared.execute("print(call_tool('add', a=1, b=2))", agent="A").stdout == "3\n"
    shared.execute("call_tool('add', a=1, b=2)\ncall_tool('add')", agent="B")
    assert shared.host_call_counts == {"A": {"add": 1}, "B": {"add": 2}}
    result = shared.execute("call_tool('add', a=1, b=2)", agent="B")
    assert [call.agent for call in result.host_calls] == ["B"]
