"""The documents: what they name exists, and what they show runs.

A Python block of README.md after the line `<!-- run -->` is run; a `text` block that follows it is what it prints.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import cpython_suite
import model_server
from wcpod.cli import cli

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_RUNNABLE = re.compile(
    r"<!-- run -->\n```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<prints>.*?)^```)?", re.DOTALL | re.MULTILINE
)
_NAMED_TEST = re.compile(r"`([\w./-]+\.(?:py|rs))::(\w+)`")
_PRIVATE = re.compile(r"(?<![\w.])/(?:home|root|work|Users|mnt)/|\.\./shared")

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def prose(document: Path) -> str:
    """The text without its code blocks."""
    return _FENCE.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """The headings as GitHub links to them."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(document: Path, program: str) -> list[str]:
    """First words after `program`, in code spans and shell blocks."""
    text = document.read_text(encoding="utf-8")
    code = [content for language, content in _FENCE.findall(text) if language == "sh"]
    code += re.findall(r"`([^`\n]+)`", prose(document))
    return [word for part in code for word in re.findall(rf"^{program} ([a-z-]+)", part, re.MULTILINE)]


def names_of_tests(path: Path) -> set[str]:
    """Names of the tests in a Python or Rust file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return set(re.findall(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)", source))
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {function.name for function in functions if function.name.startswith("test_")}


def table_rows(text: str) -> Iterator[str]:
    """The rows of all tables, without their heads."""
    lines = text.splitlines()
    for before, line in itertools.pairwise(lines):
        is_row = line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line)
        if is_row and before.startswith("|"):
            yield line


@documents
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name) if name else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@documents
def test_named_tests_exist(document: Path) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in _NAMED_TEST.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / path).is_file() or name not in names_of_tests(ROOT / path)
    ]
    assert missing == []


def test_every_promise_has_a_test() -> None:
    """Each row between the headings "Promises" and "Not promised" of SECURITY.md."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = text.split("\n## Promises\n")[1].split("\n## Not promised\n")[0]
    rows = list(table_rows(promises))
    assert len(rows) > 30
    assert [row for row in rows if not _NAMED_TEST.search(row)] == []


@documents
def test_no_private_path_is_mentioned(document: Path) -> None:
    assert _PRIVATE.findall(document.read_text(encoding="utf-8")) == []


@documents
def test_named_files_exist(document: Path) -> None:
    """Paths in code spans that begin with a folder of this repository."""
    folders = "|".join(
        ("crates", "deploy", "docs", "examples", "guest", "python", "tests", "benches", "fuzz", "skills")
    )
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", prose(document))
    assert [path for path in named if not (ROOT / path).exists()] == []


@documents
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(commands(document, "make")) - targets == set()


def test_commit_hooks_and_ci_call_make() -> None:
    """And nothing else: a check has one place."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    called = [hook["entry"] for repository in hooks["repos"] for hook in repository["hooks"]]
    assert len(called) == len([hook for hook in called if hook.startswith("make ")]) >= 3
    called += re.findall(r"^make .*$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert [command for command in called if command.removeprefix("make ") not in targets] == []


@documents
def test_commands_exist(document: Path) -> None:
    assert set(commands(document, "wcpod")) - set(cli.commands) == set()


def test_the_readme_has_every_command() -> None:
    assert set(cli.commands) - set(commands(ROOT / "README.md", "wcpod")) == set()


def test_the_share_of_the_standard_library() -> None:
    cases = json.loads((ROOT / "tests" / "cases" / "standard_library.json").read_text(encoding="utf-8"))
    text = (ROOT / "LIMITATIONS.md").read_text(encoding="utf-8")
    share = f"{cases['modules'] - len(cases['missing'])} of the {cases['modules']} public modules"
    assert share in re.sub(r"\s+", " ", text)
    assert [name for name in cases["missing"] if f"`{name}`" not in text] == []


def test_the_share_of_cpythons_own_tests() -> None:
    cases = json.loads(cpython_suite.CASES.read_text(encoding="utf-8"))
    assert cpython_suite.block(cases) in (ROOT / "LIMITATIONS.md").read_text(encoding="utf-8")


def runnable() -> list[Any]:
    blocks = _RUNNABLE.finditer((ROOT / "README.md").read_text(encoding="utf-8"))
    return [pytest.param(block["code"], block["prints"], id=f"block-{at}") for at, block in enumerate(blocks, start=1)]


@pytest.mark.microvm
@pytest.mark.parametrize(("code", "prints"), runnable())
def test_the_examples_run(code: str, prints: str | None, tmp_path: Path) -> None:
    """Each in a process of its own. An agent in it has a fake model server that calls `execute_code`."""
    if "agent_framework" in code:
        pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")

    def answer(request: dict[str, Any]) -> model_server.Reply:
        outputs = model_server.tool_outputs(request)
        if not outputs:
            return model_server.call("execute_code", code="print(call_tool('price', item='tea') * 3)")
        return model_server.Reply(re.sub(r"(?s).*<stdout>\n(.*)\n</stdout>.*", r"Three teas cost \1.", outputs[-1]))

    with model_server.model_server(answer) as (base_url, _):
        environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
        command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if prints is not None:
        assert done.stdout == prints


def test_there_are_examples() -> None:
    assert len(runnable()) >= 2
