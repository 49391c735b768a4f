"""What a run leaves in the page tables, and that the next run does not see it.

Mappings of the snapshot's pages can only be changed by a guest that broke out of its runtime. So the test for those
plays the hostile guest, and writes where that would.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO

import pytest

from wcpod import Limits, Sandbox
from wcpod._bridge import LAYOUT

pytestmark = pytest.mark.microvm

END = LAYOUT["scratch_end"]
WINDOW = END - LAYOUT["window_from_end"]
PAGE = LAYOUT["page"]
PRESENT, FRAME = 1, 0x000F_FFFF_FFFF_F000


class Scratch:
    """The scratch memory of the one sandbox in this process whose last run printed `mark`."""

    def __init__(self, memory: IO[bytes], mark: bytes) -> None:
        self._memory = memory
        for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
            self._end = int(line.split()[0].split("-")[1], 16)
            if line.split()[1].startswith("rw") and self._reads(mark):
                return
        raise AssertionError("no scratch carries the mark")

    def _reads(self, mark: bytes) -> bool:
        try:
            if self.word(WINDOW) != LAYOUT["window_magic"]:
                return False
            return self.read(WINDOW + LAYOUT["stdout_in_window"], len(mark)) == mark
        except OSError:
            return False

    def read(self, address: int, count: int) -> bytes:
        self._memory.seek(self._end - (END - address))
        return self._memory.read(count)

    def word(self, address: int) -> int:
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def write_word(self, address: int, value: int) -> None:
        self._memory.seek(self._end - (END - address))
        self._memory.write(struct.pack("<Q", value))

    def entry(self, address: int) -> int:
        """Where the last-level entry for a virtual address lies."""
        table = self.word(END - LAYOUT["root_table_from_end"])
        for shift in (39, 30, 21):
            table = self.word(table + 8 * ((address >> shift) & 511)) & FRAME
        return table + 8 * ((address >> 12) & 511)

    @property
    def begin(self) -> int:
        return END - self.word(END - LAYOUT["scratch_size_from_end"])


def snapshot_entries(scratch: Scratch) -> tuple[int, int]:
    """Entries of two pages of the interpreter's memory that are still those of the snapshot."""
    found = []
    for page in range(512):
        entry = scratch.entry(LAYOUT["linear_memory"] + page * PAGE)
        if scratch.word(entry) & PRESENT and scratch.word(entry) & FRAME < scratch.begin:
            found.append(entry)
    return found[100], found[200]


def test_a_foreign_mapping_costs_the_run_its_virtual_machine() -> None:
    with Sandbox() as sandbox:
        for _ in range(3):
            assert sandbox.run("print('marked')").stdout == "marked\n"
        assert sandbox._vm.replaced() == 0
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            scratch = Scratch(memory, b"marked\n")
            victim, other = snapshot_entries(scratch)
            scratch.write_word(victim, scratch.word(other))
        assert sandbox.run("print('next')").stdout == "next\n"
        # With nested paging the processor follows the restored tables by itself.
        assert sandbox._vm.replaced() == (1 if sandbox.isolation.hypervisor == "kvm_pvm" else 0)
        assert sandbox.run("print('and another')").stdout == "and another\n"


TOUCH = """
import io

REGION = 2 << 20  # that one table maps


class Raw(io.RawIOBase):
    # A buffer that nobody has touched yet: all of it is zeros.
    def readable(self):
        return True

    def readinto(self, buffer):
        for number, region in enumerate({order}, 1):
            at = region * REGION + 300 * 4096
            print(buffer[at], end=" ")
            buffer[at] = number
        print([buffer[region * REGION + 300 * 4096] for region in {order}])
        return 0


io.BufferedReader(Raw(), 64 << 20).read(1)
"""


def test_tables_of_a_run_are_not_seen_by_the_next() -> None:
    """Runs that touch memory in different orders use the same pages as tables for different addresses."""
    with Sandbox() as sandbox:
        for order in ([10], [15, 10], [10, 15], [20, 15, 10], [12, 10], [10, 20, 12, 15], [*range(5, 30)], [29, 5]):
            touched_right(sandbox, order)
        assert sandbox._vm.replaced() == 0


def touched_right(sandbox: Sandbox, order: list[int]) -> None:
    expected = f"{'0 ' * len(order)}{[*range(1, len(order) + 1)]}\n"
    assert sandbox.run(TOUCH.format(order=order)).stdout == expected, order


def test_nor_when_a_run_in_between_was_stopped_before_it_began() -> None:
    with Sandbox() as sandbox:
        for moment in range(1, 60):
            touched_right(sandbox, [10])
            sandbox.run("while True: pass", limits=Limits(seconds=moment * 2e-5))
            touched_right(sandbox, [15, 10])


def test_nor_when_nothing_ran_in_between() -> None:
    with Sandbox(cache=False) as sandbox:
        sandbox.snapshot(of_last_run=True)
        touched_right(sandbox, [10])
        for _ in range(2):
            sandbox._vm.restore()
        touched_right(sandbox, [15, 10])
        sandbox._vm.restore()
        sandbox.snapshot(of_last_run=True)
        touched_right(sandbox, [10, 15])


def test_untouched_memory_of_a_captured_state_can_be_read() -> None:
    """Beside a page that was touched, so that its table is there."""
    beside = TOUCH.replace("300 * 4096", "301 * 4096").replace("buffer[at] = number", "pass")
    with Sandbox() as sandbox:
        touched_right(sandbox, [10])
        sandbox.restore(sandbox.snapshot(of_last_run=True))
        for _ in range(2):
            assert sandbox.run(beside.format(order=[10])).stdout == "0 [0]\n"


def test_a_captured_state_may_be_as_slow_as_it_likes_to_prepare(slowness: float) -> None:
    """What a run installed runs no more than once for each run."""
    pause, limit = 0.5 * slowness, 0.3 * slowness
    hook = f"import sys, time\nsys.addaudithook(lambda name, _: name == 'exec' and time.sleep({pause}))"
    with Sandbox() as sandbox:
        sandbox.run(hook)
        sandbox.restore(sandbox.snapshot(of_last_run=True))
        for _ in range(3):
            result = sandbox.run("print(1)", limits=Limits(seconds=limit))
            assert (result.kind, result.usage.restore_seconds < limit) == ("timeout", True)


def test_what_honest_runs_leave_is_let_through() -> None:
    codes = [
        "1/0",
        "x = bytearray(40 << 20)",
        "import json, re, csv, sqlite3, decimal",
        "open('/tmp/a', 'w').write('x' * 10**6)",
    ]
    codes += [
        "import os\nos._exit(3)",
        "def f(): f()\nf()",
        "x = [0] * 10**9",
        "raise SystemExit(2)",
        "hash((1,) * 10**6)",
    ]
    with Sandbox() as sandbox:
        for code in codes:
            sandbox.run(code)
            assert sandbox.run("print('ok')").stdout == "ok\n"
        assert sandbox._vm.replaced() == 0
