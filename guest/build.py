"""Builds the guest image: `python guest/build.py`.

    aot/        ── cargo ────────────► the tool that changes and compiles the component
    component/  ── componentize-py ──► build/python.raw.wasm, build/python.objects, build/stdlib.bin
                ── aot, adapt ───────► build/python.wasm
                ── aot, compile ─────► build/python.image
    runtime/ + wasi/ + shim/ ─ cargo ► python/wcpod/guest/python-guest.bin

Each step is skipped when what it is made from has not changed. Nothing here is part of the package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

GUEST = Path(__file__).resolve().parent
PROJECT = GUEST.parent
BUILD = GUEST / "build"
HOSTILE = BUILD / "hostile-guest.bin"
IMAGE = PROJECT / "python" / "wcpod" / "guest" / "python-guest.bin"
#: What the guest's workspaces take from the host's: the crate that both sides share, and what it inherits.
SHARED = (PROJECT / "crates" / "guest_abi", PROJECT / "Cargo.toml")


def say(text: str) -> None:
    print(f"guest: {text}", flush=True)


def digest(paths: Iterable[Path], *words: str) -> str:
    """Of the files, and of those below the folders."""
    total = hashlib.sha256("\0".join(words).encode())
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if not {"target", "__pycache__"}.intersection(file.parts):
                total.update(str(file.relative_to(PROJECT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


class Step:
    """One step with its results; remembers what they were made from."""

    def __init__(self, name: str, results: list[Path], sources: Iterable[Path], *words: str) -> None:
        self.name, self.results = name, results
        self._stamp = BUILD / f"{results[0].name}.made-from"
        self._made_from = digest(sources, *words)

    def run(self, *commands: list[str], **environment: str) -> None:
        """Runs the commands, unless their results are there and made from the same."""
        if all(result.exists() for result in self.results) and self._remembered() == self._made_from:
            return
        say(f"{self.name} ...")
        begin = time.monotonic()
        self._stamp.unlink(missing_ok=True)
        for command in commands:
            subprocess.run(command, check=True, env={**os.environ, **environment})
        self._stamp.write_text(self._made_from, encoding="ascii")
        say(f"{self.name}: done in {time.monotonic() - begin:.0f} s")

    def _remembered(self) -> str | None:
        return self._stamp.read_text(encoding="ascii") if self._stamp.exists() else None


def target(workspace: Path) -> Path:
    """Where cargo puts what it builds in a workspace."""
    named = os.environ.get("CARGO_TARGET_DIR")
    return Path(named) if named else workspace / "target"


def cargo(workspace: Path, package: str) -> list[str]:
    return ["cargo", "build", "--release", "--locked", "--manifest-path", str(workspace / "Cargo.toml"), "-p", package]


def build_tool() -> Path:
    """What changes and compiles the component."""
    aot = GUEST / "aot"
    tool = target(aot) / "release" / "wcpod-aot"
    Step("building the ahead-of-time compiler", [tool], [aot, *SHARED]).run(cargo(aot, "wcpod-aot"))
    return tool


def build_stdlib(packages: list[str]) -> Path:
    component, result = GUEST / "component", BUILD / "stdlib.bin"
    sources = [component / name for name in ("build.py", "archive.py", "licences.py", "stdlib", "wit")]
    step = Step(
        "collecting the standard library (about a minute)", [result, result.with_suffix(".papers")], sources, *packages
    )
    step.run([sys.executable, str(component / "build.py"), "stdlib", str(result), *packages])
    return result


def build_component(tool: Path) -> Path:
    """The interpreter as a component."""
    component, result = GUEST / "component", BUILD / "python.wasm"
    raw, objects = BUILD / "python.raw.wasm", BUILD / "python.objects"
    sources = [component / name for name in ("build.py", "wcpod_guest", "wit")]
    step = Step("building the Python component (about half a minute)", [raw, objects], sources)
    step.run([sys.executable, str(component / "build.py"), "interpreter", str(raw), str(objects)])
    step = Step("pinning the interpreter's objects", [result], [raw, objects, GUEST / "aot"])
    step.run([str(tool), "adapt", str(raw), str(objects), str(result)])
    return result


def link(name: str, result: Path, compiled: Path, stdlib: Path, *options: str) -> None:
    """The runtime, with what was compiled inside."""
    sources = [GUEST / name for name in ("Cargo.toml", "Cargo.lock", "runtime", "wasi", "shim", "memfd")]
    step = Step(name, [result], [*sources, *SHARED, compiled, stdlib])
    binary = target(GUEST) / "release" / "wcpod-guest"
    step.run(
        [*cargo(GUEST, "wcpod-guest"), *options],
        ["objcopy", "--strip-all", str(binary), str(result)],
        WCPOD_COMPONENT=str(compiled),
        WCPOD_STDLIB=str(stdlib),
    )


def answer(*command: str) -> str | None:
    """What a command prints, or None where it cannot run."""
    try:
        return subprocess.run(command, cwd=GUEST, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def write_provenance(papers: Path) -> None:
    """Says beside the image what it was made from; `wcpod doctor` reads it. Without a date, so that it repeats."""
    changed = answer("git", "status", "--porcelain", "--", ".")
    record = {
        "sha256": hashlib.sha256(IMAGE.read_bytes()).hexdigest(),
        "commit": answer("git", "rev-parse", "HEAD"),
        "local_changes": None if changed is None else bool(changed),
        "rustc": answer("rustc", "--version"),
        "componentize_py": importlib.metadata.version("componentize-py"),
        **json.loads((papers / "versions.json").read_text(encoding="utf-8")),
        "packages": json.loads((papers / "packages.json").read_text(encoding="utf-8")),
    }
    IMAGE.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--packages", default="", help="pure-Python packages for the guest, such as 'beautifulsoup4==4.15.0'"
    )
    parser.add_argument("--hostile", action="store_true", help="also a guest that was taken over, to test the host")
    arguments = parser.parse_args()
    packages = arguments.packages.split()
    BUILD.mkdir(exist_ok=True)
    IMAGE.parent.mkdir(exist_ok=True)

    stdlib = build_stdlib(packages)
    tool = build_tool()
    component, compiled = build_component(tool), BUILD / "python.image"
    step = Step("compiling the interpreter to machine code", [compiled], [component, GUEST / "aot", *SHARED])
    step.run([str(tool), "compile", str(component), str(compiled)])

    if arguments.hostile:
        link("linking a hostile guest, for tests", HOSTILE, compiled, stdlib, "--features", "hostile")
    link("linking the guest image", IMAGE, compiled, stdlib)
    write_provenance(stdlib.with_suffix(".papers"))
    say(f"{IMAGE.relative_to(PROJECT)} is up to date ({IMAGE.stat().st_size / 1e6:.0f} MB)")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"guest: this command failed: {' '.join(map(str, error.cmd))}")
