"""The package as such: what it imports, and that its parts import one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wcpod

ROOT = Path(wcpod.__file__).parent
MODULES = sorted(
    ".".join(["wcpod", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path.name != "__main__.py" and "guest_code" not in path.parts
)
LAYERS = ["wcpod._bridge", "wcpod.sandbox", "wcpod.codeact", "wcpod.podcast", "wcpod.cli"]


@pytest.mark.parametrize("module", MODULES)
def test_each_module_imports_alone(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import {module}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_import_wcpod_needs_no_agent_library() -> None:
    heavy = ("agent_framework", "opencc", "rich")
    code = f"import sys, wcpod, wcpod.cli\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_imports_point_one_way() -> None:
    def layer(name: str) -> int | None:
        return next((at for at, prefix in enumerate(LAYERS) if name == prefix or name.startswith(prefix + ".")), None)

    for module in MODULES:
        own = layer(module)
        if own is None:
            continue
        path = ROOT.parent.joinpath(*module.split("."))
        source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                above = layer(node.module)
                assert above is None or above <= own, f"{module} imports {node.module}"


def test_the_public_names_are_there() -> None:
    for name in wcpod.__all__:
        assert hasattr(wcpod, name)
    assert (ROOT / "py.typed").exists()
