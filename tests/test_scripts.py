"""Parsing the two scripts out of an agent's text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wcpod.exceptions import ScriptFormatError
from wcpod.podcast.scripts import Scripts, parse_scripts

CASES = json.loads((Path(__file__).parent / "cases" / "fences.json").read_text(encoding="utf-8"))
GOOD = [pytest.param(text, right, id=name) for name, text, right in CASES if len(right) == 2]
BAD = [pytest.param(text, id=name) for name, text, right in CASES if len(right) == 1]


@pytest.mark.parametrize(("text", "right"), GOOD)
def test_shared_cases_that_parse(text: str, right: list[str]) -> None:
    assert parse_scripts(text) == Scripts(*right)


@pytest.mark.parametrize("text", BAD)
def test_shared_cases_that_fail(text: str) -> None:
    with pytest.raises(ScriptFormatError):
        parse_scripts(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```traditional\n繁\n```\n```simplified\n简\n```", id="labels beat position"),
        pytest.param("```text\n繁\n```\n```Simplified script\n简\n```", id="one label is enough"),
        pytest.param("```traditional\n繁\n```\n```\n简\n```", id="the other label is enough"),
        pytest.param("```zh-Hans\n简\n```\n```zh-Hant\n繁\n```", id="language tags"),
        pytest.param("```simplified\r\n简\r\n```\r\n```traditional\r\n繁\r\n```\r\n", id="CRLF"),
        pytest.param("~~~simplified\n简\n~~~\n~~~~traditional\n繁\n~~~~", id="tildes"),
        pytest.param("\ufeff```simplified\n简\n```\n```traditional\n繁\n```", id="byte order mark"),
        pytest.param("```simplified\n\n简\n\n```\n```traditional\n \n繁\n```", id="blank lines around"),
        pytest.param(
            "1. one\n   ```simplified\n   简\n   ```\n2. two\n   ```traditional\n   繁\n   ```", id="in a list"
        ),
        pytest.param("<div>\n```simplified\n简\n```\n</div>\n```traditional\n繁\n```", id="inside HTML"),
    ],
)
def test_forms_of_the_same_two_blocks(text: str) -> None:
    assert parse_scripts(text) == Scripts("简", "繁")


def test_a_longer_fence_holds_a_shorter_one() -> None:
    text = "````simplified\n简\n```\n代码\n```\n````\n```traditional\n繁 ``` 行内\n```"
    assert parse_scripts(text) == Scripts("简\n```\n代码\n```", "繁 ``` 行内")


def test_paragraphs_and_inner_indentation_stay() -> None:
    text = "```simplified\n第一段。\n\n  第二段。\n```\n```traditional\n第一段。\n```"
    assert parse_scripts(text).simplified == "第一段。\n\n  第二段。"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no fence", "expected exactly two fenced blocks, found no fenced block"),
        ("", "expected exactly two fenced blocks, found no fenced block"),
        ("```\n简\n```", "expected exactly two fenced blocks, found one fenced block (line 1)"),
        ("```\n简", "expected exactly two fenced blocks, found one fenced block (line 1, not closed)"),
        ("```\n简\n", "expected exactly two fenced blocks, found one fenced block (line 1, not closed)"),
        (
            "```\n1\n```\n```\n2\n```\n```\n3\n```",
            "expected exactly two fenced blocks, found three fenced blocks (line 1, 4, 7)",
        ),
        ("```\n1\n```\n" * 4, "expected exactly two fenced blocks, found 4 fenced blocks (line 1, 4, 7, 10)"),
        ("```\n简\n```\n```\n繁", "the second fenced block (line 4) is never closed"),
        ("```\n简\n```\n```\n繁\n~~~\n", "the second fenced block (line 4) is never closed"),
        ("```\n```\n```\n繁\n```", "the first fenced block (line 1) is empty"),
        ("```\n简\n```\n```\n \n\t\n```", "the second fenced block (line 4) is empty"),
        ("```simplified\n1\n```\n```simple\n2\n```", "both fenced blocks are labelled simplified"),
        ("    ```\n    简\n    ```", "expected exactly two fenced blocks, found no fenced block"),
        ("```\n\ud800\n```", "the text is not valid Unicode at character 4"),
    ],
)
def test_the_message_says_what_was_found(text: str, message: str) -> None:
    with pytest.raises(ScriptFormatError) as raised:
        parse_scripts(text)
    assert str(raised.value) == message
