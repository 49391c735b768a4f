"""Lays out checkouts of public corpora for `tools/extraction_score.py`. Fetches nothing.

    python tools/extraction_corpora.py FOLDER --aeb DIR --readability DIR --trafilatura DIR --fundus DIR --wcxb DIR

DIR is a checkout of scrapinghub/article-extraction-benchmark, mozilla/readability, adbar/trafilatura, flairNLP/fundus
and Murrough-Foley/web-content-extraction-benchmark; any of them may be left out. Needs lxml for readability's
expected pages. The pages belong to their publishers: keep the folder out of the repository.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Page = dict[str, Any]
BLOCKS = {
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "table",
    "tr",
    "td",
    "th",
    "br",
    "hr",
    "pre",
    "blockquote",
    "figure",
    "figcaption",
    "section",
    "article",
    "header",
    "footer",
    "dl",
    "dt",
    "dd",
}


def aeb(checkout: Path) -> Iterator[Page]:
    for name, page in json.loads((checkout / "ground-truth.json").read_text()).items():
        yield {
            "id": name[:12],
            "file": checkout / f"html/{name}.html.gz",
            "url": page["url"],
            "text": page["articleBody"],
        }


def readability(checkout: Path) -> Iterator[Page]:
    for folder in sorted((checkout / "test/test-pages").iterdir()):
        about = json.loads((folder / "expected-metadata.json").read_text())
        text = text_of((folder / "expected.html").read_text("utf-8", "replace"))
        url = "http://fakehost/test/page.html"
        yield {"id": folder.name, "file": folder / "source.html", "url": url, "text": text, "title": about.get("title")}


def text_of(source: str) -> str:
    from lxml import html as tree

    parts: list[str] = []

    def walk(element: Any) -> None:
        if isinstance(element.tag, str):
            edge = "\n" if element.tag in BLOCKS else ""
            parts.extend([edge, element.text or ""])
            for child in element:
                walk(child)
            parts.append(edge)
        parts.append(element.tail or "")

    walk(tree.document_fromstring(f"<html><body>{source}</body></html>"))
    return re.sub(r"\s*\n\s*", "\n", "".join(parts)).strip()


def trafilatura(checkout: Path) -> Iterator[Page]:
    for url, page in json.loads((checkout / "tests/evaldata.json").read_text()).items():
        places = [checkout / "tests" / folder / page["file"] for folder in ("cache", "eval")]
        if file := next((place for place in places if place.exists()), None):
            strings = {"with": page["with"], "without": page["without"]}
            yield {"id": page["file"], "file": file, "url": url, "title": page.get("title")} | strings


def fundus(checkout: Path) -> Iterator[Page]:
    """Each page with the version of its publisher's expected text that most of it has."""
    for country in sorted((checkout / "tests/resources/parser/test_data").iterdir()):
        urls = json.loads((country / "meta.info").read_text()) if (country / "meta.info").exists() else {}
        for expected in sorted(country.glob("*.json")):
            versions = json.loads(expected.read_text())
            for file in sorted(country.glob(f"{expected.stem}_*.html.gz")):
                if not re.fullmatch(re.escape(expected.stem) + r"_\d{4}_\d\d_\d\d", file.name[: -len(".html.gz")]):
                    continue
                raw = plain(file)
                found = {name: share(paragraphs(version), raw) for name, version in versions.items()}
                best = max(found, key=lambda name: found[name])
                text = "\n".join(paragraphs(versions[best]))
                if found[best] >= 0.5 and len(text) >= 200:
                    title = versions[best].get("title")
                    yield {
                        "id": file.name[: -len(".html.gz")],
                        "file": file,
                        "url": urls[file.name]["url"],
                        "text": text,
                        "title": title,
                    }


def plain(file: Path) -> str:
    """The words of a page, without its tags."""
    source = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
    return re.sub(r"\W+", " ", html.unescape(re.sub(r"<[^>]+>", " ", source)))


def paragraphs(version: dict[str, Any]) -> list[str]:
    found = list(version["body"].get("summary") or [])
    for section in version["body"].get("sections") or []:
        found += [*(section.get("headline") or []), *(section.get("paragraphs") or [])]
    return found


def share(texts: list[str], raw: str) -> float:
    return sum(re.sub(r"\W+", " ", text).strip()[:40] in raw for text in texts) / max(1, len(texts))


def wcxb(checkout: Path, split: str) -> Iterator[Page]:
    for file in sorted((checkout / split / "ground-truth").glob("*.json")):
        about = json.loads(file.read_text())
        right, kind = about["ground_truth"], about["_internal"]["page_type"]["primary"]
        url = about.get("url") or f"http://{file.stem}.invalid/"
        page = {"id": file.stem, "file": checkout / split / f"html/{file.stem}.html.gz", "url": url, "kind": kind}
        yield page | {"text": right.get("main_content") or "", "title": right.get("title")}


def write(folder: Path, pages: Iterator[Page]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with (folder / "pages.jsonl").open("w", encoding="utf-8") as out:
        for page in pages:
            if page["file"].exists():
                out.write(json.dumps(page | {"file": os.path.relpath(page["file"], folder)}, ensure_ascii=False) + "\n")
                count += 1
    print(folder, count, "pages")


def main() -> None:
    parser = argparse.ArgumentParser(description="Lay out checkouts of public corpora.")
    parser.add_argument("folder", type=Path)
    for name in ("aeb", "readability", "trafilatura", "fundus", "wcxb"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    readers = {"aeb": aeb, "moz": readability, "evaldata": trafilatura, "fundus": fundus}
    options = {"moz": "readability", "evaldata": "trafilatura"}
    for name, reader in readers.items():
        if checkout := getattr(arguments, options.get(name, name)):
            write(arguments.folder / name, reader(checkout))
    if arguments.wcxb:
        write(arguments.folder / "wcxb", wcxb(arguments.wcxb, "dev"))
        write(arguments.folder / "wcxb_test", wcxb(arguments.wcxb, "test"))


if __name__ == "__main__":
    main()
