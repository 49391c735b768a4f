"""Copies what the tests inside the emulator need into a folder: this Python, pytest, the package, its tests."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
DISTRIBUTIONS = ["pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest-timeout", "pytest-asyncio",
                 "pytest-benchmark", "click", "hypothesis", "sortedcontainers", "typing_extensions"]  # fmt: skip
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages",
    "config-*", "*.a",
)  # fmt: skip


def main() -> None:
    root = Path(sys.argv[1])
    python, site = root / "python", root / "python" / "site"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (python / "bin").mkdir(parents=True)
    site.mkdir()
    shutil.copy2(Path(sys.executable).resolve(), python / "bin" / "python3")
    shutil.copytree(sysconfig.get_path("stdlib"), python / "lib" / version, ignore=LEFT_OUT)
    dynamic = Path(sysconfig.get_path("stdlib")) / "lib-dynload"
    if not dynamic.is_dir():
        dynamic = Path(sysconfig.get_config_var("DESTSHARED"))
        shutil.copytree(dynamic, python / "lib" / version / "lib-dynload", dirs_exist_ok=True)
    for name in DISTRIBUTIONS:
        for file in metadata.files(name) or []:
            if file.suffix != ".pyc" and ".." not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file.locate(), target)
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache", ".*cache", "podcast")
    shutil.copytree(PROJECT / "python" / "wcpod", root / "project" / "python" / "wcpod", ignore=ignored)
    for folder in ("tests", "benches"):
        shutil.copytree(PROJECT / folder, root / "project" / folder, ignore=ignored)
    hostile = Path("guest", "build", "hostile-guest.bin")
    if (PROJECT / hostile).exists():
        (root / "project" / hostile).parent.mkdir(parents=True)
        shutil.copy2(PROJECT / hostile, root / "project" / hostile)
    for extra in sys.argv[2:]:
        shutil.copytree(extra, site, ignore=ignored, dirs_exist_ok=True)
    shutil.copy2(PROJECT / "pyproject.toml", root / "project" / "pyproject.toml")


if __name__ == "__main__":
    main()
