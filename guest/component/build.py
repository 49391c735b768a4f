"""Builds the guest's Python: the component ``python.wasm`` and the standard library ``stdlib.bin``.

Run by ``make guest`` with the interpreter of a virtual environment that has componentize-py. What is
up to date is left alone. Nothing is downloaded but time zones and the packages asked for with ``--package``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import archive
import image
import licences

HERE = Path(__file__).resolve().parent
VERSION = "0.25.1"
"""Of componentize-py. Its CPython is the guest's, and is relied on in details (see wcpod_guest/relocation.py)."""


#: Packages that every guest has. CPython for WASI has no time zones of its own.
ALWAYS = ("tzdata==2026.6",)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for python.wasm and stdlib.bin")
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME[==VERSION]",
        help="add a pure-Python package and what it depends on (may be repeated)",
    )  # fmt: skip
    arguments = parser.parse_args()
    installed = importlib.metadata.version("componentize-py")
    if installed != VERSION:
        print(f"componentize-py {installed} is installed, but the guest is made for {VERSION}", file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    packages = sorted({*ALWAYS, *arguments.package})
    shared = [Path(__file__), HERE / "wit"]
    step(
        arguments.out / "stdlib.bin",
        [*shared, HERE / "archive.py", HERE / "licences.py", HERE / "stdlib"],
        packages,
        build_stdlib,
    )
    step(arguments.out / "python.wasm", [*shared, HERE / "image.py", HERE / "wcpod_guest"], [], build_component)
    return 0


def step(target: Path, inputs: Iterable[Path], packages: list[str], build: Callable[[Path, list[str]], bytes]) -> None:
    """Builds ``target`` unless it was built from the same inputs."""
    key = fingerprint(inputs, packages)
    stamp = target.with_name(target.name + ".key")
    if target.exists() and stamp.exists() and stamp.read_text() == key:
        print(f"{target.name} is up to date")
        return
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wcpod-guest-") as folder:
        result = build(Path(folder), packages)
        stamp.unlink(missing_ok=True)
        target.write_bytes(result)
        if (papers := Path(folder) / "papers").is_dir():
            kept = target.with_suffix(".papers")
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(papers, kept)
    stamp.write_text(key)
    print(f"{target.name}: {len(result) / 1e6:.1f} MB in {time.monotonic() - started:.0f} s", flush=True)


def fingerprint(inputs: Iterable[Path], packages: list[str]) -> str:
    """A hash of the inputs' names and contents."""
    digest = hashlib.sha256(repr((VERSION, packages)).encode())
    for root in inputs:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc":
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(HERE)} {content}\n".encode())
    return digest.hexdigest()


def build_stdlib(folder: Path, packages: list[str]) -> bytes:
    """Collects the standard library out of componentize-py, and compiles it with its CPython."""
    stage = folder / "stage"
    library = stage / "lib" / "python3.14"
    (library / "site-packages").mkdir(parents=True)
    print("Downloading " + " ".join(packages), flush=True)
    install(packages, library / "site-packages")
    print("Collecting and compiling the standard library (about a minute)", flush=True)
    # A copy, because CPython leaves its cache beside what it imports.
    additions = shutil.copytree(HERE / "stdlib", folder / "stdlib")
    papers = folder / "papers"
    papers.mkdir()
    paths = [additions / "collector", additions, stage, papers]
    componentize("stdlib", "wcpod_stdlib", paths, folder / "unused.wasm")
    licences.collect(library / "site-packages", papers)
    return archive.pack(stage)


def build_component(folder: Path, _packages: list[str]) -> bytes:
    """The component, with the interpreter as it is after ``wcpod_guest`` was imported."""
    print("Building the Python component (about half a minute)", flush=True)
    sources = folder / "sources"
    shutil.copytree(HERE / "wcpod_guest", sources / "wcpod_guest", ignore=shutil.ignore_patterns("__pycache__"))
    result = folder / "python.wasm"
    componentize("guest", "wcpod_guest", [sources], result)
    component = bytearray(result.read_bytes())
    pinned = image.pin(component, (sources / "objects.bin").read_bytes())
    print(f"{pinned} objects pinned", flush=True)
    return image.count_stack(bytes(component))


def componentize(world: str, module: str, paths: list[Path], result: Path) -> None:
    """Runs componentize-py; its own output is shown only if it fails."""
    command = [sys.executable, "-c", "import sys; from componentize_py import script; sys.exit(script())", "-q"]
    command += ["-d", str(HERE / "wit"), "-w", world, "componentize", module, "-o", str(result)]
    for path in paths:
        command += ["-p", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"componentize-py failed:\n{done.stdout}{done.stderr}".partition("\nStack backtrace:")[0])


def install(packages: list[str], target: Path) -> None:
    """Unpacks wheels for any platform into ``target``."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none", "--python-version=3.14"]
    command += ["--target", str(target), *packages]
    if subprocess.run(command).returncode != 0:
        sys.exit("pip could not install " + " ".join(packages) + ": only pure-Python wheels can be added")
    shutil.rmtree(target / "bin", ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
