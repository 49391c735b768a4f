"""Makes the guest's Python: the standard library ``stdlib.bin``, and the component with the interpreter.

Run by ``guest/build.py``, which knows when, with the interpreter of a virtual environment that has componentize-py.
Nothing is downloaded but time zones and the packages asked for.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import archive
import licences

HERE = Path(__file__).resolve().parent
VERSION = "0.25.1"
"""Of componentize-py. Its CPython is the guest's, and is relied on in details (see wcpod_guest/relocation.py)."""


#: Packages that every guest has. CPython for WASI has no time zones of its own.
ALWAYS = ("tzdata==2026.6",)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_subparsers(required=True, dest="what")
    stdlib = what.add_parser("stdlib", help="the standard library; its licence texts go beside it")
    stdlib.add_argument("result", type=Path)
    stdlib.add_argument("packages", nargs="*", metavar="NAME[==VERSION]", help="pure-Python packages to add")
    interpreter = what.add_parser("interpreter", help="the component, and the list of its objects")
    interpreter.add_argument("result", type=Path)
    interpreter.add_argument("objects", type=Path)
    arguments = parser.parse_args()
    installed = importlib.metadata.version("componentize-py")
    if installed != VERSION:
        print(f"componentize-py {installed} is installed, but the guest is made for {VERSION}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="wcpod-guest-") as folder:
        if arguments.what == "stdlib":
            build_stdlib(Path(folder), sorted({*ALWAYS, *arguments.packages}), arguments.result)
        else:
            build_interpreter(Path(folder), arguments.result, arguments.objects)
    return 0


def build_stdlib(folder: Path, packages: list[str], result: Path) -> None:
    """Collects the standard library out of componentize-py, and compiles it with its CPython."""
    stage = folder / "stage"
    library = stage / "lib" / "python3.14"
    (library / "site-packages").mkdir(parents=True)
    install(packages, library / "site-packages")
    # A copy, because CPython leaves its cache beside what it imports.
    additions = shutil.copytree(HERE / "stdlib", folder / "stdlib")
    papers = folder / "papers"
    papers.mkdir()
    paths = [additions / "collector", additions, stage, papers]
    componentize("stdlib", "wcpod_stdlib", paths, folder / "unused.wasm")
    licences.collect(library / "site-packages", papers)
    result.write_bytes(archive.pack(stage))
    kept = result.with_suffix(".papers")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(papers, kept)


def build_interpreter(folder: Path, result: Path, objects: Path) -> None:
    """The component, with the interpreter as it is after ``wcpod_guest`` was imported, and the list of its objects."""
    sources = folder / "sources"
    shutil.copytree(HERE / "wcpod_guest", sources / "wcpod_guest", ignore=shutil.ignore_patterns("__pycache__"))
    componentize("guest", "wcpod_guest", [sources], result)
    shutil.copyfile(sources / "objects.bin", objects)


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
