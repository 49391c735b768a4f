"""What the kernel counts while print(1) runs. Counts are steadier than times on a shared machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from figures import Note

RUNS = 200
EVENTS = {
    "kvmmmu:kvm_mmu_spte_requested": "pages mapped by the hypervisor",
    "kvm:kvm_page_fault": "nested page faults",
    "kvm:kvm_emulate_insn": "emulated instructions",
    "kvm:kvm_inj_exception": "exceptions given to the guest",
    "kvm:kvm_userspace_exit": "exits to the host",
    "page-faults": "page faults of the host",
}
PROGRAM = """
import sys
from wcpod import Sandbox
from warm import warm_run
with Sandbox() as sandbox:
    for _ in range(5):
        sandbox.run("print(1)")
    run = warm_run if sys.argv[2] == "warm" else Sandbox.run
    for _ in range(int(sys.argv[1])):
        run(sandbox, "print(1)")
"""


def counted(runs: int, kind: str) -> dict[str, int]:
    """Of a process that makes so many runs, by event."""
    command = ["perf", "stat", "-x,", "-e", ",".join(EVENTS), sys.executable, "-c", PROGRAM, str(runs), kind]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    if done.returncode != 0:
        pytest.skip(f"the kernel does not tell: {done.stderr.strip().splitlines()[-1]}")
    fields = [line.split(",") for line in done.stderr.splitlines() if line.count(",") > 3]
    return {each[2]: int(each[0]) for each in fields if each[0].isdigit()}


@pytest.mark.parametrize("kind", ["restore + run", "warm"])
def test_counters(note: Note, kind: str) -> None:
    """counted by the kernel in one run of print(1)"""
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    few, many = counted(0, kind), counted(RUNS, kind)
    each = {
        name: round((many[event] - few.get(event, 0)) / RUNS)
        for event, name in EVENTS.items()
        if many.get(event, 0) > few.get(event, 0)
    }
    note(count=RUNS, beside=each)
