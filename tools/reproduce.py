"""Builds the guest a second time, from the last commit in another folder, and says which parts come out the same.

`make reproduce`. The interpreter's component is the one part that differs: componentize-py keeps a Python that drew its
hash seed when it was built. So the parts behind it are compared with the component of the first build.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "guest" / "build"
IMAGE = ROOT / "python" / "wcpod" / "guest" / "python-guest.bin"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str | Path, **environment: str) -> None:
    own = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    subprocess.run([str(word) for word in command], check=True, env={**own, **environment}, stdout=sys.stderr)


def unpack(folder: Path) -> None:
    """The last commit, whatever the working tree holds."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def second_build(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Each part of both builds, first and second."""
    guest = folder / "guest"
    run(sys.executable, guest / "build.py")
    built = guest / "build"
    compiled, linked = folder / "again.image", folder / "again.bin"
    run(guest / "aot" / "target" / "release" / "wcpod-aot", "compile", BUILD / "python.wasm", compiled)
    cargo = ("cargo", "build", "--release", "--locked", "--manifest-path", guest / "Cargo.toml", "-p", "wcpod-guest")
    run(*cargo, WCPOD_COMPONENT=str(BUILD / "python.image"), WCPOD_STDLIB=str(BUILD / "stdlib.bin"))
    run("objcopy", "--strip-all", guest / "target" / "release" / "wcpod-guest", linked)
    return {
        "standard library (stdlib.bin)": (BUILD / "stdlib.bin", built / "stdlib.bin"),
        "interpreter's component (python.wasm)": (BUILD / "python.wasm", built / "python.wasm"),
        "machine code of one component (python.image)": (BUILD / "python.image", compiled),
        "guest image of one component (python-guest.bin)": (IMAGE, linked),
    }


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    unpack(folder)
    differ = 0
    for name, (first, second) in second_build(folder).items():
        same = digest(first) == digest(second)
        expected = "component (" not in name
        differ += expected and not same
        print(f"reproduce: {name}: {'the same' if same else 'differs' + ('' if expected else ', as expected')}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "reproduce"))
