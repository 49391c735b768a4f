"""Scores the conversion to traditional characters beside OpenCC alone, and writes the table of SPECIFICATION.md.

    make conversion [OPENCC=checkout]

The checkout is one of github.com/BYVoid/OpenCC: its own test cases for Taiwan are scored too. None is kept here.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from opencc import OpenCC

from wcpod.podcast.hanzi import to_traditional

ROOT = Path(__file__).parent.parent
TESTS, SPECIFICATION = ROOT / "tests", ROOT / "SPECIFICATION.md"
BEGIN, END = "<!-- conversion: begin -->", "<!-- conversion: end -->"
_JSON_OF_OPENCC = re.compile(r",(?=\s*[}\]])")

Cases = list[tuple[str, list[str]]]


def own(name: str) -> Cases:
    lines = (TESTS / "conversion" / f"{name}.tsv").read_text("utf-8").splitlines()
    return [(line.split("\t")[0], line.split("\t")[1].split("|")) for line in lines if not line.startswith("#")]


def shared() -> Cases:
    files = (TESTS / "cases" / f"{name}.json" for name in ("zh", "zh-2"))
    return [(text, [right]) for file in files for _, text, right in json.loads(file.read_text("utf-8"))]


def of_opencc(file: Path, config: str) -> Cases:
    """Cases of OpenCC's for one of its configurations. Its files have commas that JSON does not allow."""
    cases = json.loads(_JSON_OF_OPENCC.sub("", file.read_text("utf-8")))["cases"]
    return [(case["input"], [case["expected"][config]]) for case in cases if config in case["expected"]]


def score(cases: Cases, convert: Callable[[str], str]) -> int:
    return sum(convert(text) in right for text, right in cases)


def sets(checkout: Path | None) -> dict[str, Cases]:
    found = {
        "sentences of football news (`tests/conversion/sentences.tsv`)": own("sentences"),
        "phrases that are easily cut in the wrong place (`tests/conversion/phrases.tsv`)": own("phrases"),
        "`tests/cases/zh.json` and `zh-2.json`": shared(),
    }
    if checkout:
        found["OpenCC's own cases, `test/testcases/testcases.json`, for `s2twp`"] = of_opencc(
            checkout / "test/testcases/testcases.json", "s2twp"
        )
        found["OpenCC's cases for its jieba plug-in, `s2twp_jieba`"] = of_opencc(
            checkout / "plugins/jieba/tests/data/jieba_comparison_testcases.json", "s2twp_jieba"
        )
    return found


def table(checkout: Path | None) -> str:
    plain = OpenCC("s2twp").convert
    rows = [
        f"| {name} | {len(cases)} | {score(cases, plain)} | {score(cases, to_traditional)} |"
        for name, cases in sets(checkout).items()
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in ("opencc", "rjieba"))
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    command = "make conversion" + (" OPENCC=checkout" if checkout else "")
    head = ["| cases | how many | right: OpenCC alone | right: wcpod |", "|---|---|---|---|"]
    return "\n".join([BEGIN, *head, *rows, "", f"Versions: {versions}. Date: {date}. Command: `{command}`.", END])


def main() -> None:
    text = table(Path(sys.argv[1]) if sys.argv[1:] else None)
    before, _, rest = SPECIFICATION.read_text("utf-8").partition(BEGIN)
    SPECIFICATION.write_text(f"{before}{text}{rest.partition(END)[2]}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
