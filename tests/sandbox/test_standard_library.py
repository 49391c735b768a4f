"""Which modules of the standard library can be imported in a restored guest: all but those in standard_library.json.

The file holds the number of public modules and a reason for each that is missing; LIMITATIONS.md gives both
(`tests/test_documents.py` compares them).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wcpod import Sandbox

CASES = json.loads((Path(__file__).parent.parent / "cases" / "standard_library.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.microvm


@pytest.mark.timeout(1200)
def test_every_public_module_imports_or_has_a_reason(sandbox: Sandbox) -> None:
    """Each module in a run of its own, so that none finds what another imported."""
    listing = "import sys\nprint(*sorted(name for name in sys.stdlib_module_names if not name.startswith('_')))"
    names = sandbox.run(listing).stdout.split()
    failed = {}
    for name in names:
        result = sandbox.run(f"import {name}")
        if not result.ok:
            failed[name] = (result.stderr or result.detail or result.kind).strip().splitlines()[-1]
    missing = CASES["missing"]
    assert {name: end for name, end in failed.items() if name not in missing} == {}, "these should import"
    assert sorted(set(missing) - set(failed)) == [], "these import: take them off the list and out of LIMITATIONS.md"
    assert len(names) == CASES["modules"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("requests", 'use call_tool("fetch_url", url=...)'),
        ("ssl", 'use call_tool("fetch_url", url=...)'),
        ("bs4", "html.parser is there"),
        ("numpy", "nothing can be installed"),
    ],
)
def test_a_module_that_is_not_there_says_what_is(sandbox: Sandbox, name: str, hint: str) -> None:
    result = sandbox.run(f"import {name}")
    assert (result.kind, result.exit_code) == ("error", 1)
    assert f"ModuleNotFoundError: No module named {name!r} (" in result.stderr
    assert hint in result.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import subprocess\nsubprocess.run(['ls'])", "wasi does not support processes"),
        ("import os\nos.fork()", "AttributeError: module 'os' has no attribute 'fork'"),
        ("from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()", "cannot start processes"),
        ("import urllib.request\nurllib.request.urlopen('https://x')", 'use call_tool("fetch_url", url=...)'),
        ("import _thread\n_thread.start_new_thread(print, ())", "RuntimeError: can't start new thread"),
        ("import socket\nsocket.create_connection(('1.1.1.1', 80))", 'use call_tool("fetch_url", url=...)'),
        ("import asyncio\nasyncio.run(asyncio.open_connection('1.1.1.1', 80))", 'use call_tool("fetch_url", url=...)'),
        ("import asyncio\nasyncio.run(asyncio.Event().wait())", "waits for something that cannot happen"),
        ("import signal\nsignal.alarm(1)", "AttributeError: module 'signal' has no attribute 'alarm'"),
        ("import os\nos.symlink('/tmp/a', '/tmp/b')", "Not supported"),
        ("open('/lib/python3.14/os.py', 'w')", "Read-only file system"),
        ("open('/input/new', 'w')", "Read-only file system"),
        ("for n in range(5000): open(f'/tmp/{n}', 'w').close()", "No space left on device"),
        ("kept = [open('/tmp/a', 'w') for _ in range(300)]", "Out of memory"),
    ],
)
def test_what_cannot_work_ends_in_a_python_error(sandbox: Sandbox, code: str, message: str) -> None:
    result = sandbox.run(code)
    assert (result.kind, result.exit_code) == ("error", 1), result
    assert message in result.stderr


def test_what_works_although_one_might_doubt_it(sandbox: Sandbox) -> None:
    code = """\
import asyncio, sqlite3, tempfile, zipfile, gzip, logging, decimal, threading, xml.etree.ElementTree as tree
from concurrent.futures import ThreadPoolExecutor

async def soon():
    await asyncio.sleep(0.01)
    return 7

with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-1, -2])))
thread = threading.Thread(target=print, args=("in place",))
thread.start()
thread.join()
print(asyncio.run(soon()), asyncio.run(asyncio.to_thread(abs, -3)))
print(sqlite3.connect("/tmp/a.db").execute("select 1 + 1").fetchone())
print(gzip.decompress(gzip.compress(b"a")), tree.fromstring("<a/>").tag, decimal.Decimal(1) / 4)
"""
    result = sandbox.run(code)
    assert result.stdout == "[1, 2]\nin place\n7 3\n(2,)\nb'a' a 0.25\n", result.stderr


def test_command_lines_are_parsed_as_those_of_a_script(sandbox: Sandbox) -> None:
    code = """\
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=3)
print(parser.parse_args(), sys.argv)
parser.parse_args(["--x"])
"""
    result = sandbox.run(code)
    assert result.stdout == "Namespace(n=3) ['main.py']\n"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "main.py: error: unrecognized arguments: --x")


def test_time_zones_are_known(sandbox: Sandbox) -> None:
    code = """\
from datetime import UTC, datetime
from zoneinfo import ZoneInfo
kick_off = datetime(2026, 6, 11, 19, 0, tzinfo=UTC)
print(kick_off.astimezone(ZoneInfo("America/Mexico_City")), kick_off.astimezone(ZoneInfo("Asia/Taipei")))
"""
    result = sandbox.run(code)
    assert result.stdout == "2026-06-11 13:00:00-06:00 2026-06-12 03:00:00+08:00\n", result.stderr


def test_decimals_are_formatted_in_every_way(sandbox: Sandbox) -> None:
    code = """\
from decimal import Decimal
print(f"{Decimal('-0.04'):z.1f} {Decimal('1234.5'):,.2f}")
format(Decimal(1), "x")
"""
    result = sandbox.run(code)
    assert result.stdout == "0.0 1,234.50\n"
    assert result.stderr.splitlines()[-1].startswith("ValueError")


def test_the_hash_seed_is_the_snapshots(sandbox: Sandbox) -> None:
    """The order of a set of strings can be known beforehand; everything that is random is not."""
    code = "print(hash('wcpod'), list({'a', 'b', 'c', 'd'}))"
    assert sandbox.run(code).stdout == sandbox.run(code).stdout


def test_files_too_large_to_come_back_are_told(sandbox: Sandbox) -> None:
    told = "the files below /output were left out: {} bytes are too many to bring back"
    result = sandbox.run("open('/output/a', 'wb').write(bytes(3 << 20))")
    assert (result.kind, result.files) == ("ok", {})
    assert result.detail == told.format((3 << 20) + len("a") + 8)
    names = sandbox.run("for n in range(4000): open(f'/output/{n:0200}', 'wb').write(bytes(500))")
    assert (names.kind, names.files, names.detail) == ("ok", {}, told.format(4000 * (500 + 200 + 8)))
