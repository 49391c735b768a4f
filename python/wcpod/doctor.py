"""`wcpod doctor`: can this machine run a sandbox? Boots a guest, restores it, interrupts it, tells what it saw."""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wcpod import Limits, Sandbox, __version__, _bridge
from wcpod.exceptions import WcpodError
from wcpod.sandbox.image import VARIABLE, image_path


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    ok: bool
    name: str
    text: str


def findings() -> Iterator[Finding]:
    """Looks at one thing after the other; ends with the first that is missing, because the rest needs it."""
    yield Finding(True, "wcpod", f"{__version__}, guest interface {_bridge.INTERFACE_VERSION}")
    yield Finding(True, "python", f"{platform.python_version()} on {platform.system()} {platform.release()}")
    machine = platform.machine()
    yield Finding(machine == "x86_64", "processor", machine if machine == "x86_64" else f"{machine}: x86_64 is needed")
    try:
        hypervisor = _bridge.detect_hypervisor()
    except WcpodError as error:
        yield Finding(False, "hypervisor", str(error))
        return
    yield Finding(True, "hypervisor", hypervisor)
    path = image_path()
    try:
        digest = _bridge.image_digest(path)
    except WcpodError as error:
        yield Finding(False, "guest image", f"{error}. {VARIABLE} names another one")
        return
    yield Finding(True, "guest image", f"{path} ({path.stat().st_size / 1e6:.0f} MB, sha256 {digest[:16]})")
    yield Finding(*provenance(path, digest))
    begin = time.perf_counter()
    try:
        sandbox = Sandbox(limits=Limits(seconds=10), cache=False)
    except WcpodError as error:
        yield Finding(False, "boot", str(error))
        return
    with sandbox:
        ready = time.perf_counter() - begin
        mode = sandbox.isolation.privilege_mode
        why = "ring 0 is emulated here" if mode == "ring3" else "ring 0 runs natively here"
        yield Finding(True, "boot", f"ready in {ready:.2f} s; the interpreter runs in {mode} ({why})")
        yield from _checks(sandbox)


def provenance(image: Path, digest: str) -> tuple[bool, str, str]:
    """What the file beside a guest image says of where it comes from. Its word, not a signature."""
    name = "made from"
    try:
        record = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))
        told, commit = record["sha256"], record["commit"]
        parts = [f"CPython {record['python']}", f"componentize-py {record['componentize_py']}", str(record["rustc"])]
        packages = ", ".join(f"{package['name']} {package['version']}" for package in record["packages"])
    except FileNotFoundError:
        return True, name, f"unknown: there is no {image.with_suffix('.json').name} beside it"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return False, name, f"{image.with_suffix('.json')} cannot be read: {error!r}"
    if told != digest:
        return False, name, f"{image.with_suffix('.json')} describes another image (sha256 {told[:16]}): build it again"
    source = f"commit {commit[:12]}" if commit else "a source distribution"
    changes = ", with local changes" if record.get("local_changes") else ""
    return True, name, f"{source}{changes}; {', '.join(parts)}; packages: {packages or 'none'}"


def _checks(sandbox: Sandbox) -> Iterator[Finding]:
    for name, check in (("run", _run), ("restore", _restore), ("interrupt", _interrupt)):
        try:
            yield check(sandbox)
        except WcpodError as error:
            yield Finding(False, name, str(error))


def _run(sandbox: Sandbox) -> Finding:
    result = sandbox.run("import sys\nprint(sys.version.split()[0], sys.platform)")
    if not result.ok:
        return Finding(False, "run", f"ended by {result.kind}: {result.detail or result.stderr.strip()}")
    times = [_seconds(lambda: sandbox.run("print(1)")) for _ in range(20)]
    return Finding(
        True,
        "run",
        f"CPython {result.stdout.strip()}; restore + print(1) takes {statistics.median(times) * 1e3:.1f} ms "
        f"(median of {len(times)})",
    )


def _restore(sandbox: Sandbox) -> Finding:
    sandbox.run("import builtins\nbuiltins.left_behind = 1")
    result = sandbox.run("import builtins\nprint(hasattr(builtins, 'left_behind'))")
    clean = result.stdout == "False\n"
    restore = f"takes {result.usage.restore_seconds * 1e3:.2f} ms"
    return Finding(clean, "restore", restore if clean else f"{restore}, but a run saw what an earlier one left behind")


def _interrupt(sandbox: Sandbox) -> Finding:
    limit = 0.3
    result = sandbox.run("print('begun')\nwhile True: pass", limits=Limits(seconds=limit))
    late = result.usage.seconds - limit
    if result.kind != "timeout" or result.stdout != "begun\n" or not sandbox.run("").ok:
        return Finding(False, "interrupt", f"a loop ended by {result.kind}, having printed {result.stdout!r}")
    return Finding(True, "interrupt", f"an endless loop was stopped {late * 1e3:.0f} ms after its limit")


def _seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def main() -> int:
    """Prints the report. Returns 0 when a sandbox works here, 1 otherwise."""
    good = True
    for finding in findings():
        good &= finding.ok
        mark = "ok " if finding.ok else "NO "
        print(f"{mark} {finding.name:12} {finding.text}", flush=True)
    print("A sandbox works here." if good else "No sandbox works here: see the line that begins with NO.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
