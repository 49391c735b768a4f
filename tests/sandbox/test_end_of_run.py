"""A run ends as CPython ends: handlers run, what was written is there, and what the code made is finalised.

The programs are in tests/cases/end_of_run.json. The oracle is the Python that runs the tests, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wcpod import Limits, Sandbox

pytestmark = pytest.mark.microvm


def programs() -> list[tuple[str, str]]:
    """Each writer and each change of standard output with each ending, and the other programs as they are."""
    cases = json.loads((Path(__file__).parent.parent / "cases" / "end_of_run.json").read_text(encoding="utf-8"))
    ended = [
        (f"{name}; {how}", f"{code}\n{end}")
        for name, code in (*cases["writers"].items(), *cases["streams"].items())
        for how, end in cases["endings"].items()
    ]
    return ended + list(cases["finalisers"].items())


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in programs()])
def test_a_run_ends_as_cpython_ends(sandbox: Sandbox, tmp_path: Path, code: str) -> None:
    result = sandbox.run(code)
    folder = tmp_path / "output"
    folder.mkdir()
    script = tmp_path / "main.py"
    script.write_text(code.replace("/output", str(folder)), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "-X", "utf8", script], cwd=tmp_path, capture_output=True)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert (result.exit_code, result.stdout, result.files) == (done.returncode, done.stdout.decode(), files), result
    assert last_lines(result.stderr) == last_lines(done.stderr.decode())


def test_a_writer_in_a_cycle_loses_nothing(sandbox: Sandbox) -> None:
    """CPython may close what is below a writer first, and lose what was written."""
    code = "class Log: pass\nlog = Log(); log.me = log; log.f = open('/output/a', 'w'); log.f.write('x'); del log"
    assert sandbox.run(code).files == {"a": b"x"}


def test_errors_of_handlers_show_where_they_are(sandbox: Sandbox) -> None:
    result = sandbox.run(
        "import atexit\n\ndef boom():\n    1 / 0\n\natexit.register(boom)\natexit.register(print, 'x')"
    )
    assert (result.kind, result.stdout) == ("ok", "x\n")
    assert [line.strip() for line in result.stderr.splitlines()[1:]] == [
        "Traceback (most recent call last):",
        'File "/tmp/main.py", line 4, in boom',
        "1 / 0",
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "import atexit\n@atexit.register\ndef end():\n    print('ending')\n    while True: pass",
        "class A:\n    def __del__(self):\n        print('ending')\n        while True: pass\na = A()",
    ],
)
def test_an_end_without_end_is_ended_by_the_limit(sandbox: Sandbox, slowness: float, code: str) -> None:
    result = sandbox.run(code, limits=Limits(seconds=0.5 * slowness))
    assert (result.kind, result.stdout) == ("timeout", "ending\n")
    assert sandbox.run("print('ok')").stdout == "ok\n"


@pytest.mark.parametrize(
    ("kind", "code", "limits"),
    [
        ("timeout", "while True: pass", {"seconds": 0.5}),
        ("output", "while True: print('x' * 4000)", {"output_bytes": 4096}),
        ("crash", "t = ()\nfor _ in range(300_000): t = (t,)\nhash(t)", {}),
    ],
)
def test_what_an_end_of_the_hosts_drops_is_said(
    sandbox: Sandbox, slowness: float, kind: str, code: str, limits: dict[str, float]
) -> None:
    seconds = limits.get("seconds", 20) * slowness
    given = Limits(seconds=seconds, output_bytes=int(limits.get("output_bytes", 65536)))
    result = sandbox.run(f"print('before')\nwith open('/output/a', 'w') as f: f.write('x')\n{code}", limits=given)
    assert (result.kind, result.files) == (kind, {}), result
    assert result.stdout.startswith("before\n")
    assert result.detail is not None
    assert result.detail.endswith("; any files below /output were dropped")


def test_files_come_back_after_every_end_of_the_codes_own(sandbox: Sandbox) -> None:
    for end in ("", "1 / 0", "import sys\nsys.exit(3)", "import os\nos._exit(3)", "raise MemoryError"):
        result = sandbox.run(f"with open('/output/a', 'w') as f: f.write('x')\n{end}")
        assert (result.files, result.detail) == ({"a": b"x"}, None), end


@pytest.mark.parametrize("stream", ["io.StringIO()", "open('/output/log', 'w')", "Tee()", "None", "5"])
def test_a_traceback_is_seen_wherever_sys_stderr_leads(sandbox: Sandbox, stream: str) -> None:
    tee = "class Tee:\n    write = lambda self, text: old.write(text)\n    flush = lambda self: None\n"
    result = sandbox.run(f"import io, sys\nold = sys.stderr\n{tee}sys.stderr = {stream}\n1 / 0")
    assert result.stderr.count("ZeroDivisionError: division by zero") == 1
    if "log" in stream:
        assert b"ZeroDivisionError" in result.files["log"]


@pytest.mark.parametrize("code", ["print(2 ** 100)", "x = [n * n for n in range(9)]\nsum(x)", "1 / 0", "exit(3)"])
def test_code_that_can_leave_nothing_ends_as_other_code(sandbox: Sandbox, code: str) -> None:
    """The end of such code is left out (`executor._may_leave_something`), and a comment is enough to have it."""
    short, whole = sandbox.run(code), sandbox.run(code + "  # import")
    assert (short.kind, short.exit_code, short.stdout, short.value) == (
        whole.kind,
        whole.exit_code,
        whole.stdout,
        whole.value,
    )


def test_what_one_run_left_open_is_no_matter_of_the_next(slowness: float) -> None:
    """Runs that start from what another left: its modules stay, its files are closed."""
    with Sandbox(limits=Limits(seconds=20 * slowness)) as made:
        module = "open('/tmp/kept.py', 'w').write('log = open(\"/tmp/log\", \"w\")')\n"
        made.run(module + "import kept\nkept.log.write('x')\nimport atexit\natexit.register(print, 'once')")
        made.restore(made.snapshot(of_last_run=True))
        look = "import sys\nprint(sys.modules['kept'].log.closed, open('/tmp/log').read())"
        for _ in range(2):
            assert made.run(look).stdout == "True x\n"


def last_lines(text: str) -> list[str]:
    """The lines that do not depend on where code lies, how a version words it and how it marks the place."""
    return [line for line in text.splitlines() if line[:1].strip() and not line.startswith("Exception ignored")]
