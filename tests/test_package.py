"""The package as such: what it imports, and that its parts import one way."""

from __future__ import annotations

import ast
import json
import re
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
#: The rooms of the package from the ground up, a floor a line. A room imports from its own floor only itself.
FLOORS = [
    {"_bridge", "exceptions", "control_characters", "shows"},
    {"sandbox"},
    {"telemetry", "model_arguments"},
    {"codeact", "doctor", "mcp_server"},
    {"agent_framework", "podcast"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


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


def source_of(module: str) -> Path:
    path = ROOT.parent.joinpath(*module.split("."))
    return path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"


def imported(source: str, module: str, *, package: bool) -> set[str]:
    """What code imports of this package, in whatever form, as dotted names: `from a import b` gives `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=name, names=names, level=level):
                parents = module.split(".")[: len(module.split(".")) - level + package] if level else []
                base = ".".join([*parents, *([name] if name else [])])
                found |= {f"{base}.{alias.name}" for alias in names}
            case ast.Call(func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module")):
                found |= {str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant)}
    return {name for name in found if name.split(".")[0] == "wcpod"}


def room(name: str) -> str | None:
    """The room that a dotted name is in; `wcpod` itself, and what it offers, is none."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR_OF else None


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import wcpod.cli", {"wcpod.cli"}),
        ("import json, wcpod.podcast.run as run", {"wcpod.podcast.run"}),
        ("from wcpod import codeact, Sandbox", {"wcpod.codeact", "wcpod.Sandbox"}),
        ("from wcpod.cli import options", {"wcpod.cli.options"}),
        ("from . import result", {"wcpod.sandbox.result"}),
        ("from ..cli import options", {"wcpod.cli.options"}),
        ("def f():\n    from .. import cli", {"wcpod.cli"}),
        ("importlib.import_module('wcpod.cli')", {"wcpod.cli"}),
        ("__import__('wcpod.cli')", {"wcpod.cli"}),
        ("import wcpods, os", set()),
    ],
)
def test_every_form_of_import_is_seen(source: str, found: set[str]) -> None:
    assert imported(source, "wcpod.sandbox.pool", package=False) == found


def test_every_room_has_a_floor() -> None:
    there = {module.split(".")[1] for module in MODULES if module != "wcpod"} | {"_bridge"}
    assert there == set(FLOOR_OF), "say in FLOORS where a new room of the package belongs"


@pytest.mark.parametrize("module", [module for module in MODULES if module != "wcpod"])
def test_imports_point_one_way(module: str) -> None:
    path = source_of(module)
    own = room(module)
    assert own is not None
    names = imported(path.read_text(encoding="utf-8"), module, package=path.name == "__init__.py")
    above = [
        name
        for name in sorted(names)
        if (other := room(name)) is not None and other != own and FLOOR_OF[other] >= FLOOR_OF[own]
    ]
    assert above == []


def test_the_extension_is_private() -> None:
    """The package and its own tests and benches know it; nobody is shown it."""
    repository = ROOT.parent.parent
    shown = [repository / "README.md", *(repository / "examples").glob("*.py")]
    assert len(shown) > 5
    assert [path.name for path in shown if re.search(r"\b_bridge", path.read_text(encoding="utf-8"))] == []


def test_the_public_names() -> None:
    """What `import wcpod` shows is what `__all__` says, all of it ours and each with a docstring."""
    code = "import json, wcpod\nprint(json.dumps([name for name in vars(wcpod) if not name.startswith('_')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    submodules = {module.split(".")[1] for module in MODULES if module != "wcpod"}
    assert set(json.loads(done.stdout)) - submodules - {"logging", "warnings", "DEBUG_BUILD", "VERSION"} == set(
        wcpod.__all__
    )
    for name in wcpod.__all__:
        public = getattr(wcpod, name)
        assert public.__module__.startswith("wcpod."), name
        assert public.__doc__, name
        assert not public.__doc__.startswith(f"{name}("), f"{name} has only the docstring that dataclass makes"


def test_types_are_shipped() -> None:
    assert (ROOT / "py.typed").is_file()
