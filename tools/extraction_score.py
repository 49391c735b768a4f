"""Scores the readable text of pages against what a person says it is, beside trafilatura if it is installed.

    python tools/extraction_score.py FOLDER [--markdown FILE]

FOLDER holds a folder a corpus, each with a `pages.jsonl`, one JSON object a line:

    {"id": "a1", "file": "html/a1.html", "url": "https://...", "text": "the text of the article"}
    {"id": "b2", "file": "html/b2.html", "url": "https://...", "with": ["must stand there"], "without": ["must not"]}

`file` is relative to the corpus and may end in `.gz`. `title` is kept for others who read the folder; `kind`
(`article`, `forum`, ...) splits the scores of a corpus. Nothing is fetched. `tools/extraction_corpora.py` makes such
a folder out of checkouts of public corpora.

A text is compared by its runs of four words (each Chinese, Japanese, Korean and Thai character is a word), as
article-extraction-benchmark does: precision and recall are means over the pages, and F1 is that of the means. Pages
with strings count how many of the strings are right. `first 8 KiB` is the recall of the first 8192 bytes, and
`possible` that of the first 8192 bytes of the right text itself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]+"
)
FIRST_BYTES = 8192
Page = dict[str, Any]
Result = tuple[Page, str, float]


def pages(folder: Path) -> list[Page]:
    """The pages of all corpora, each with `corpus` and the `path` of its HTML, decompressed."""
    found = []
    for file in sorted(folder.glob("*/pages.jsonl")):
        for text in file.open(encoding="utf-8"):
            page = json.loads(text)
            found.append(page | {"corpus": file.parent.name, "path": unpacked(file.parent / page["file"])})
    return found


def unpacked(path: Path) -> str:
    if path.suffix != ".gz":
        return str(path)
    plain = Path(tempfile.gettempdir()) / "extraction-score" / path.parent.name / path.stem
    if not plain.exists():
        plain.parent.mkdir(parents=True, exist_ok=True)
        plain.write_bytes(gzip.decompress(path.read_bytes()))
    return str(plain)


def tokens(text: str) -> list[str]:
    return WORD.findall(text)


def line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def grams(text: str, length: int = 4) -> Counter[tuple[str, ...]]:
    words = tokens(text)
    runs = Counter(tuple(words[at : at + length]) for at in range(max(1, len(words) - length + 1)))
    del runs[()]
    return runs


def precision_and_recall(right: str, read: str) -> tuple[float, float]:
    wanted, found = grams(right), grams(read)
    both, all_wanted, all_found = (wanted & found).total(), wanted.total(), found.total()
    if not all_wanted and not all_found:
        return 1.0, 1.0
    return both / all_found if all_found else 0.0, both / all_wanted if all_wanted else 0.0


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def cut(text: str) -> str:
    return text.encode()[:FIRST_BYTES].decode("utf-8", "ignore")


def score_texts(results: list[Result]) -> dict[str, float]:
    pairs = [precision_and_recall(page["text"], text) for page, text, _ in results]
    precision, recall = (statistics.mean(pair[side] for pair in pairs) for side in (0, 1))
    return {
        "precision": precision,
        "recall": recall,
        "F1": f1(precision, recall),
        "first 8 KiB": statistics.mean(precision_and_recall(page["text"], cut(text))[1] for page, text, _ in results),
        "possible": statistics.mean(precision_and_recall(page["text"], cut(page["text"]))[1] for page, _, _ in results),
    }


def score_strings(results: list[Result]) -> dict[str, float]:
    right = wrong = missed = 0
    for page, text, _ in results:
        text = line(text)
        found = sum(line(wanted) in text for wanted in page["with"])
        right, missed = right + found, missed + len(page["with"]) - found
        wrong += sum(line(unwanted) in text for unwanted in page["without"])
    precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
    return {"precision": precision, "recall": recall, "F1": f1(precision, recall)}


def score(results: list[Result]) -> dict[str, float]:
    texts = [result for result in results if result[0].get("text")]
    scores = score_texts(texts) if texts else score_strings([result for result in results if "with" in result[0]])
    return scores | {"pages": len(results), "median ms": statistics.median(ms for _, _, ms in results)}


COLUMNS = ("pages", "precision", "recall", "F1", "first 8 KiB", "possible", "median ms")


def table(tools: dict[str, list[Result]]) -> str:
    """A Markdown table: a line a corpus and tool, and a line a kind of page."""
    rows = ["| corpus | tool | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---|" * len(COLUMNS)]
    for name in sorted({group for results in tools.values() for page, _, _ in results for group in groups(page)}):
        for tool, results in tools.items():
            chosen = [result for result in results if name in groups(result[0])]
            scores = score([result for result in chosen if result[0].get("text") or "with" in result[0]])
            cells = [
                f"{scores[column]:.3f}" if isinstance(scores.get(column), float) else str(scores.get(column, ""))
                for column in COLUMNS
            ]
            cells[-1] = f"{scores['median ms']:.2f}"
            rows.append(f"| {name} | {tool} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def groups(page: Page) -> Iterable[str]:
    if not page.get("text") and "with" not in page:
        return []
    kind = page.get("kind")
    return [page["corpus"]] + ([f"{page['corpus']}: {kind}"] if kind else [])


def run(read: Callable[[bytes, str], str], wanted: list[Page]) -> list[Result]:
    results = []
    for page in wanted:
        html = Path(page["path"]).read_bytes()
        started = time.perf_counter()
        text = read(html, page["url"])
        results.append((page, text, (time.perf_counter() - started) * 1000))
    return results


def wcpod_reader() -> Callable[[bytes, str], str]:
    from wcpod import extract_page

    return lambda html, url: str(extract_page(html, content_type="text/html", url=url, limit=50_000_000)["BODY"])


def trafilatura_reader() -> Callable[[bytes, str], str] | None:
    try:
        import trafilatura
    except ImportError:
        return None
    return lambda html, _: trafilatura.extract(html, include_comments=False, include_tables=True) or ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Score the readable text of pages.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="also write the scores here")
    arguments = parser.parse_args()
    wanted = pages(arguments.folder)
    if not wanted:
        parser.error(f"no */pages.jsonl in {arguments.folder}")
    tools = {"wcpod": run(wcpod_reader(), wanted)}
    if peer := trafilatura_reader():
        tools["trafilatura"] = run(peer, wanted)
    print(table(tools))
    for tool, results in tools.items():
        corpora = sorted({page["corpus"] for page, _, _ in results})
        means = {name: score([result for result in results if result[0]["corpus"] == name])["F1"] for name in corpora}
        print(f"\n{tool}: mean F1 {statistics.mean(means.values()):.4f} over {', '.join(means)}")
        empty = [page["id"] for page, text, _ in results if not text.strip()]
        print(f"{tool}: {len(empty)} pages without text; median {statistics.median(ms for _, _, ms in results):.2f} ms")
        if arguments.json:
            found = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
            arguments.json.write_text(json.dumps(found | {tool: means}, indent=1))


if __name__ == "__main__":
    main()
