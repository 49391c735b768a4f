"""Trains the model that tells the text of an article from its surroundings, and judges it on folds.

    cargo build --release -p egress --features training --example extraction
    python crates/egress/training/train.py FOLDER [--folds-only]

FOLDER holds corpora as `tools/extraction_score.py` describes them. Needs numpy and scikit-learn. A page with `text` is
labelled block by block: a block belongs to the article when half of its runs of four words stand there. A page with
`with` and `without` labels only the blocks that hold one of those. Pages of a `kind` other than `article` are left out,
and so is every corpus whose name ends in `_test`.

Each page is judged by a model that saw no page of its site: five folds by the last labels of the host name, the same
for both steps. The folds' scores go to standard output, and the weights of all pages to `weights.txt` beside this file.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import extraction_score as score  # noqa: E402

EXAMPLE = ROOT / "target/release/examples/extraction"
FOLDS = 5
SECOND_LEVELS = (".uk", ".jp", ".br", ".au", ".kr", ".tr", ".in", ".za", ".il", ".cn")
CLIP = 6.0
NEIGHBOURS = (-3, -2, -1, 1, 2, 3)
WINDOWS = (2, 5, 10)


def site(page):
    host = urlsplit(page["url"]).netloc.split(":")[0]
    if "." not in host:
        return page["id"].rsplit("-", 1)[0]
    return ".".join(host.split(".")[-3 if host.endswith(SECOND_LEVELS) else -2 :])


def example(*arguments, paths):
    done = subprocess.run(
        [EXAMPLE, *arguments], input="".join(f"{path}\n" for path in paths), capture_output=True, text=True, check=True
    )
    return [json.loads(line) if line.startswith(("[", "{")) else line for line in done.stdout.split("\n") if line]


class Corpus:
    """Pages, the texts of their blocks and the blocks' features; `rows(i)` are those of page i."""

    def __init__(self, folder):
        self.pages = score.pages(folder)
        with tempfile.NamedTemporaryFile() as file:
            self.texts = example("features", file.name, paths=[page["path"] for page in self.pages])
            self.names = example("names", paths=[])
            self.features = np.fromfile(file.name, dtype="<f4").reshape(-1, len(self.names))
        self.starts = np.cumsum([0, *map(len, self.texts)])
        sites = sorted({site(page) for page in self.pages})
        folds = dict(zip(sites, np.random.default_rng(7).integers(0, FOLDS, len(sites)), strict=True))
        self.folds = np.array([folds[site(page)] for page in self.pages])
        self.labels = [self.label(index) for index in range(len(self.pages))]

    def rows(self, index):
        return slice(self.starts[index], self.starts[index + 1])

    def label(self, index):
        """The blocks of a page that are labelled, their labels and weights, or None."""
        page, texts = self.pages[index], self.texts[index]
        if not texts or page["corpus"].endswith("_test") or page.get("kind", "article") != "article":
            return None
        if page.get("text"):
            lengths = np.array([len(text) for text in texts])
            weights = np.minimum(40, lengths**0.5 + 2) * (600 / ((lengths**0.5).sum() + 50))
            return np.arange(len(texts)), in_text(texts, page["text"]), weights
        if "with" not in page:
            return None
        found = [
            (at, said) for at, text in enumerate(texts) if (said := in_strings(score.line(text), page)) is not None
        ]
        at, labels = zip(*found, strict=True) if found else ((), ())
        return (np.array(at), np.array(labels), np.full(len(at), 12.0)) if found else None

    def fit(self, features, wanted):
        """Weights of a logistic regression over the pages `wanted`, the bias first."""
        chosen = [index for index in wanted if self.labels[index] is not None]
        rows = np.vstack([features[self.rows(index)][self.labels[index][0]] for index in chosen]).astype(np.float64)
        labels = np.concatenate([self.labels[index][1] for index in chosen])
        weights = np.concatenate([self.labels[index][2] for index in chosen])
        scaler = StandardScaler().fit(rows)
        model = LogisticRegression(C=0.1, max_iter=120).fit(scaler.transform(rows), labels, sample_weight=weights)
        numbers = model.coef_[0] / np.where(scaler.scale_ > 0, scaler.scale_, 1)
        return np.concatenate([[model.intercept_[0] - numbers @ scaler.mean_], numbers])


def in_text(texts, gold):
    tokens = score.tokens(gold)
    grams = set(zip(*[tokens[at:] for at in range(4)], strict=False))
    lines = {" ".join(score.tokens(line)) for line in gold.split("\n")}
    joined = f" {' '.join(tokens)} "
    blocks = [score.tokens(text) for text in texts]
    labels = []
    for block in blocks:
        runs = list(zip(*[block[at:] for at in range(4)], strict=False))
        labels.append(
            sum(run in grams for run in runs) >= len(runs) / 2 if runs else bool(block) and " ".join(block) in lines
        )
    for at in range(1, len(blocks) - 1):
        between = labels[at - 1] and labels[at + 1] and 0 < len(blocks[at]) < 4
        labels[at] = labels[at] or (between and f" {' '.join(blocks[at])} " in joined)
    return np.array(labels, dtype=int)


def in_strings(text, page):
    for wanted in map(score.line, page["with"]):
        if wanted in text or (len(text) > 40 and text in wanted):
            return 1
    return 0 if any(score.line(unwanted) in text for unwanted in page["without"]) else None


def surroundings(odds, lengths):
    """What `surroundings` of `model.rs` says."""
    count = len(odds)
    odds = np.clip(odds, -CLIP, CLIP)
    text = lengths / (1 + np.exp(-odds))
    texts, all_lengths = (np.concatenate([[0], np.cumsum(values)]) for values in (text, lengths))
    total = max(1.0, texts[-1])
    index = np.arange(count)
    columns = []
    for at in NEIGHBOURS:
        near = index + at
        columns.append(np.where((near >= 0) & (near < count), odds[np.clip(near, 0, count - 1)], -CLIP))
    before, behind = texts[:-1] / total, (total - texts[1:]) / total
    inside = np.minimum(before, behind)
    columns += [before, behind, inside]
    for window in WINDOWS:
        start, end = np.maximum(0, index - window), np.minimum(count, index + window + 1)
        others = np.maximum(1, all_lengths[end] - all_lengths[start] - lengths)
        columns.append((texts[end] - texts[start] - text) / others)
    columns += [np.full(count, np.log1p(total)), odds, odds * inside * 2]
    return np.stack(columns, 1)


def around_names():
    names = [f"around_{at}" for at in NEIGHBOURS] + ["around_before", "around_behind", "around_inside"]
    return [*names, *[f"around_within_{window}" for window in WINDOWS], "around_all", "around_own", "around_own_inside"]


def write(path, corpus, first, second):
    first = np.concatenate([first, np.zeros(len(second) - len(first))])
    names = ["bias", *corpus.names, *around_names()]
    lines = [f"{name} {one:.6g} {two:.6g}\n" for name, one, two in zip(names, first, second, strict=True)]
    path.write_text(
        "# Written by train.py: feature, weight of the first judgement, weight of the second.\n" + "".join(lines)
    )


def main():
    parser = argparse.ArgumentParser(description="Train the model of the readable text.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds-only", action="store_true", help="judge the folds, and write no weights")
    arguments = parser.parse_args()
    corpus = Corpus(arguments.folder)
    everything = range(len(corpus.pages))
    others = [np.flatnonzero(corpus.folds != fold) for fold in range(FOLDS)]
    firsts = [corpus.fit(corpus.features, chosen) for chosen in others]
    around = np.zeros((len(corpus.features), len(around_names())), np.float32)
    lengths = np.expm1(corpus.features[:, corpus.names.index("length")])
    for index in everything:
        rows, first = corpus.rows(index), firsts[corpus.folds[index]]
        if rows.start < rows.stop:
            around[rows] = surroundings(corpus.features[rows] @ first[1:] + first[0], lengths[rows])
    both = np.hstack([corpus.features, around])
    read = {}
    with tempfile.TemporaryDirectory() as folder:
        for fold in range(FOLDS):
            weights = Path(folder) / "weights.txt"
            write(weights, corpus, firsts[fold], corpus.fit(both, others[fold]))
            judged = np.flatnonzero(corpus.folds == fold)
            read |= dict(
                zip(
                    judged,
                    example("pages", weights, paths=[corpus.pages[index]["path"] for index in judged]),
                    strict=True,
                )
            )
    results = [(page, read[index]["page"]["BODY"], read[index]["ms"]) for index, page in enumerate(corpus.pages)]
    print("pages judged by models that saw no page of their site:")
    print(score.table({"wcpod": results}))
    if not arguments.folds_only:
        write(HERE / "weights.txt", corpus, corpus.fit(corpus.features, everything), corpus.fit(both, everything))


if __name__ == "__main__":
    main()
