"""wcpod beside hyperlight-sandbox 0.8.0, the same print(1) in the same process, in turn: `make bench-nested`.

For machines whose KVM can run both, or an emulated processor: hyperlight-sandbox's guests do not run on kvm_pvm. Needs
the dependency group `peer`. The last line is the result as JSON, which benches/specification.py reads.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperlight_sandbox import Sandbox as Peer

from warm import warm_run
from wcpod import Sandbox

CODE, ROUNDS = "print(1)", 60
COUNTERS = Path("/sys/kernel/debug/kvm")
COUNTED = {"exits": "exits", "pf_taken": "nested page faults", "insn_emulation": "emulated instructions"}
MARK = "@bench "


def timed(act: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def counters() -> dict[str, int]:
    """What this kernel's KVM counted so far for all guests, where it tells."""
    return {each: int(file.read_text()) for each in COUNTED if (file := COUNTERS / each).is_file()}


def counted(act: Callable[[], Any], rounds: int = 20) -> dict[str, int]:
    before = counters()
    for _ in range(rounds):
        act()
    return {COUNTED[each]: round((count - before[each]) / rounds) for each, count in counters().items()}


def main() -> None:
    rows: dict[str, dict[str, list[float]]] = {}

    def note(what: str, who: str, seconds: float) -> None:
        rows.setdefault(what, {}).setdefault(who, []).append(seconds)

    peer = Peer(backend="wasm", module="python_guest.path")
    peer.run("None")
    snapshot = peer.snapshot()
    with Sandbox(cache=False) as ours:

        def warm() -> Any:
            return warm_run(ours, CODE)

        def restore_and_run_peer() -> None:
            peer.restore(snapshot)
            peer.run(CODE)

        for _ in range(5):
            ours.run(CODE)
            restore_and_run_peer()
        for _ in range(ROUNDS):
            note("restore", "wcpod", timed(ours._vm.restore))
            note("restore", "peer", timed(lambda: peer.restore(snapshot)))
            ours.run(CODE)
            note("restore + run", "wcpod", timed(lambda: ours.run(CODE)))
            note("restore + run", "peer", timed(restore_and_run_peer))
            note("warm run", "wcpod", timed(warm))
            note("warm run", "peer", timed(lambda: peer.run(CODE)))
        counts = {"wcpod": counted(lambda: ours.run(CODE)), "peer": counted(restore_and_run_peer)}
        for what, times in rows.items():
            for who, seconds in times.items():
                median = statistics.median(seconds) * 1e3
                print(f"{who:6} {what:14} median {median:6.2f} ms, min {min(seconds) * 1e3:6.2f}")
        isolation = ours.isolation
        result = {"hypervisor": isolation.hypervisor, "privilege_mode": isolation.privilege_mode, "counts": counts}
        print(MARK + json.dumps({**result, "seconds": rows, "date": time.strftime("%Y-%m-%d")}))


if __name__ == "__main__":
    main()
