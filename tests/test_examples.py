"""Every example runs, and prints what its docstring says."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import model_server

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NEEDS = {"agent_framework.openai": "agent_framework_openai", "mcp": "mcp", "wcpod.podcast": "opencc"}


def test_there_is_one_for_each_way_of_use() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "agent",
        "host_tools",
        "hyperlight_provider",
        "mcp_client",
        "podcast",
        "read_pages",
        "run_code",
        "run_code_async",
        "two_agents",
    ]


def answer(request: dict[str, Any]) -> model_server.Reply:
    """A model that asks the sandbox for a price, and says what it got."""
    outputs = model_server.tool_outputs(request)
    if not outputs:
        return model_server.call("execute_code", code="print(call_tool('price', item='tea') * 3)")
    cost = re.sub(r"(?s).*<stdout>\n(.*)\n</stdout>.*", r"\1", outputs[-1]).strip()
    return model_server.Reply(f"Three teas cost {cost}.")


@pytest.mark.microvm
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(example: Path, tmp_path: Path) -> None:
    source = example.read_text(encoding="utf-8")
    for name, package in NEEDS.items():
        if f"from {name}" in source and importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    documented = (ast.get_docstring(ast.parse(source)) or "").split("prints:\n\n")[1]
    with model_server.model_server(answer) as (base_url, _):
        environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
        done = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:__main__", str(example)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == textwrap.dedent(documented) + "\n"
