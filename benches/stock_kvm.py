"""wcpod beside hyperlight-sandbox 0.8.0, the same print(1) in the same process: `python benches/stock_kvm.py`.

For machines whose KVM can run both, or an emulated processor: hyperlight-sandbox's guests do not run on kvm_pvm. Needs
hyperlight-sandbox, hyperlight-sandbox-backend-wasm and hyperlight-sandbox-python-guest, all 0.8.0.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from hyperlight_sandbox import Sandbox as Peer

from wcpod import Sandbox, _bridge

CODE, ROUNDS = "print(1)", 60


def timed(act: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def row(name: str, times: list[float]) -> None:
    print(f"{name:24} median {statistics.median(times) * 1e3:6.2f} ms, min {min(times) * 1e3:6.2f}")


def main() -> None:
    with Sandbox(cache=False) as ours:
        print(ours.isolation)
        restore = [timed(ours._vm.restore) for _ in range(ROUNDS)]
        whole = [timed(lambda: ours.run(CODE)) for _ in range(ROUNDS)]
        stop = _bridge.Stop
        warm = [
            timed(lambda: ours._run(CODE, None, None, None, session=None, agent=None, stop=stop(), warm=True))
            for _ in range(ROUNDS)
        ]
    for name, times in (("restore", restore), ("restore + run", whole), ("warm run", warm)):
        row(f"wcpod {name}", times)

    peer = Peer(backend="wasm", module="python_guest.path")
    peer.run("None")
    snapshot = peer.snapshot()
    parts = []
    for _ in range(ROUNDS):
        restored = timed(lambda: peer.restore(snapshot))
        parts.append((restored, restored + timed(lambda: peer.run(CODE))))
    row("peer restore", [part[0] for part in parts])
    row("peer restore + run", [part[1] for part in parts])
    row("peer warm run", [timed(lambda: peer.run(CODE)) for _ in range(ROUNDS)])


if __name__ == "__main__":
    main()
