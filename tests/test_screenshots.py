"""The pictures of the documents, and the script that makes them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
NAMES = ["devui.png", "report-phone.png", "report.png", "run.png"]


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_each_picture_is_shown_and_small() -> None:
    shown = re.findall(r"\]\(images/([\w.-]+)\)", (DOCS / "README.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(path.name for path in (DOCS / "images").iterdir()) == NAMES
    for name in NAMES:
        assert (DOCS / "images" / name).stat().st_size < 300_000


@pytest.mark.microvm
def test_the_script_makes_them(tmp_path: Path) -> None:
    for package in ("playwright", "pyte", "agent_framework_devui"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed (Debian's package chromium)")
    command = [sys.executable, str(DOCS / "screenshots.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert {name: size_of(tmp_path / name)[0] for name in NAMES if name != "run.png"} == {
        "devui.png": 1280,
        "report-phone.png": 390,
        "report.png": 1100,
    }
