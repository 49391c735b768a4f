"""Builds the guest image: `python guest/build.py`.

    component/  ── componentize-py ──► build/python.wasm, build/stdlib.bin
    aot/        ── cargo, Cranelift ─► build/python.image
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
BUILD = GUEST / "build"
ABI = GUEST.parent / "crates" / "guest_abi"
IMAGE = GUEST.parent / "python" / "wcpod" / "guest" / "python-guest.bin"


def say(text: str) -> None:
    print(f"guest: {text}", flush=True)


def digest(paths: Iterable[Path], *words: str) -> str:
    """Of the files, and of those below the folders."""
    total = hashlib.sha256("\0".join(words).encode())
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if "target" not in file.parts and "__pycache__" not in file.parts:
                total.update(str(file.relative_to(GUEST.parent)).encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


class Step:
    """One step with its result; remembers what the result was made from."""

    def __init__(self, name: str, result: Path, made_from: str) -> None:
        self.name, self.result, self.made_from = name, result, made_from
        self.stamp = BUILD / f"{result.name}.made-from"

    def fresh(self) -> bool:
        return self.result.exists() and self.stamp.exists() and self.stamp.read_text() == self.made_from

    def run(self, *commands: list[str], **environment: str) -> None:
        say(f"{self.name} ...")
        begin = time.monotonic()
        for command in commands:
            subprocess.run(command, check=True, env={**os.environ, **environment})
        self.stamp.write_text(self.made_from)
        say(f"{self.name}: done in {time.monotonic() - begin:.0f} s")


def target(workspace: Path) -> Path:
    """Where cargo puts what it builds in a workspace."""
    named = os.environ.get("CARGO_TARGET_DIR")
    return Path(named) if named else workspace / "target"


def cargo(workspace: Path, package: str) -> list[str]:
    return ["cargo", "build", "--release", "--locked", "--manifest-path", str(workspace / "Cargo.toml"), "-p", package]


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
    packages = parser.parse_args().packages.split()
    BUILD.mkdir(exist_ok=True)
    IMAGE.parent.mkdir(exist_ok=True)

    component = GUEST / "component"
    wasm, stdlib, compiled = BUILD / "python.wasm", BUILD / "stdlib.bin", BUILD / "python.image"
    options = [word for package in packages for word in ("--package", package)]
    subprocess.run([sys.executable, str(component / "build.py"), "--out", str(BUILD), *options], check=True)

    aot = GUEST / "aot"
    compiler = Step("building the ahead-of-time compiler", target(aot) / "release" / "wcpod-aot", digest([aot, ABI]))
    if not compiler.fresh():
        compiler.run(cargo(aot, "wcpod-aot"))
    step = Step("compiling the interpreter to machine code", compiled, digest([wasm, aot, ABI]))
    if not step.fresh():
        step.run([str(compiler.result), str(wasm), str(compiled)])

    sources = [GUEST / name for name in ("Cargo.toml", "Cargo.lock", "runtime", "wasi", "shim", "memfd")] + [ABI]
    linked = Step("linking the guest image", IMAGE, digest([*sources, compiled, stdlib]))
    if not linked.fresh():
        binary = target(GUEST) / "release" / "wcpod-guest"
        linked.run(
            cargo(GUEST, "wcpod-guest"),
            ["objcopy", "--strip-all", str(binary), str(IMAGE)],
            WCPOD_COMPONENT=str(compiled),
            WCPOD_STDLIB=str(stdlib),
        )
    write_provenance(wasm.with_name("stdlib.papers"))
    say(f"{IMAGE.relative_to(GUEST.parent)} is up to date ({IMAGE.stat().st_size / 1e6:.0f} MB)")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"guest: this command failed: {' '.join(map(str, error.cmd))}")
