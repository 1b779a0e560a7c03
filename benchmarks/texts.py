"""Compare TextClassifier on Reuters-21578 with tf-idf and one linear SVM per label; and stream a long file.

    EXMLDS_DATA=… python benchmarks/texts.py             # reads the test rows
    EXMLDS_DATA=… python benchmarks/texts.py --validation # ours on training texts, split in their order
    python benchmarks/texts.py --long                    # 2 GB of synthetic JSON lines: time and memory

C and the counts of the SVM, plain or sublinear, are chosen on a fifth of the training texts by micro-F1; ours
has its default settings. The standard errors are those of the sample of test texts: of P@1 the usual one, of
micro-F1 by a bootstrap. With --validation, the first 50, 60, 70, 80 and 90% of the training texts are fitted,
which are in chronological order, and the next 10% are predicted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from exmlds import ExMLDS, TextClassifier, load, metrics
from exmlds.data import find, make_library, open_texts, read_texts
from exmlds.selection import random_split
from measure import destination, parser_of, peak_bytes, seconds, write_results

SEEDS = 5
CHRONOLOGICAL = (0.5, 0.6, 0.7, 0.8, 0.9)  # shares of the training texts that are fitted, and the next 10%
BOOTSTRAP = 2_000
LONG = 2.0  # GB, of the committed run
WORDS, WORDS_A_TEXT, LABELS = 50_000, 600, 1_000

Labels = list[list[str]]


def micro_f1(said: np.ndarray, true: np.ndarray) -> float:
    return float(2 * (said & true).sum() / (said.sum() + true.sum()))


def machine_scores(
    texts: list[str], labels: Labels, asked: list[str], true: Labels, C: float, sublinear: bool
) -> tuple[float, float]:
    """micro-F1 and P@1."""
    names = MultiLabelBinarizer().fit([*labels, *true])
    vectors = TfidfVectorizer(sublinear_tf=sublinear).fit(texts)
    model = OneVsRestClassifier(LinearSVC(C=C, random_state=0), n_jobs=2)
    model.fit(vectors.transform(texts), names.transform(labels))
    scores, truth = model.decision_function(vectors.transform(asked)), names.transform(true) > 0
    first = truth[np.arange(len(asked)), scores.argmax(axis=1)]
    return micro_f1(scores > 0, truth), float(first.mean())


def our_counts(model: TextClassifier, asked: list[str], true: Labels) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) right, predicted and true labels of each text, and (n,) whether the first label is right."""
    truth = model.label_matrix(true, unknown="append")
    said = model.predict(asked)
    right = np.asarray(said.multiply(truth[:, : said.shape[1]]).sum(axis=1)).ravel()
    counts = np.column_stack([right, np.diff(said.indptr), [len(row) for row in true]])
    first = metrics.Ranking(truth, model.predict_topk(asked, 1), 1)
    return counts.astype(float), first.hits[:, 0].astype(float)


def f1_of(counts: np.ndarray) -> float:
    right, predicted, true = counts.sum(axis=0)
    return float(2 * right / (predicted + true))


def chronological() -> dict[str, Any]:
    """Ours on training texts in their order, a seed for each part."""
    folder = find("reuters21578-90", "train").parent
    texts, labels = read_texts(folder / "train.jsonl.gz")
    splits = []
    for seed, share in enumerate(CHRONOLOGICAL):
        start, stop = (round(part * len(texts)) for part in (share, share + 0.1))
        model = TextClassifier(model=ExMLDS(random_state=seed)).fit(texts[:start], labels[:start])
        counts, first = our_counts(model, texts[start:stop], labels[start:stop])
        found = {"share": share, "test": stop - start, "F1": f1_of(counts), "P@1": float(first.mean())}
        splits.append({**found, "analyzer": str(model.analyzer_)})
        print(splits[-1], flush=True)
    return {"split": "validation", "splits": splits}


def reuters() -> dict[str, Any]:
    folder = find("reuters21578-90", "train").parent
    (texts, labels), (asked, true) = (read_texts(folder / f"{split}.jsonl.gz") for split in ("train", "test"))
    train, held = random_split(len(texts), 0.2, random_state=0)
    tried = {}
    for C, sublinear in product((0.3, 1.0, 3.0), (False, True)):
        tried[C, sublinear], _ = machine_scores(
            [texts[i] for i in train],
            [labels[i] for i in train],
            [texts[i] for i in held],
            [labels[i] for i in held],
            C,
            sublinear,
        )
    C, sublinear = max(tried, key=lambda key: tried[key])
    theirs = machine_scores(texts, labels, asked, true, C, sublinear)
    ours, spent = [], []
    for seed in range(SEEDS):
        model = TextClassifier(model=ExMLDS(random_state=seed))
        spent.append(seconds(lambda: model.fit(texts, labels)))  # noqa: B023
        ours.append(our_counts(model, asked, true))
    # The standard errors are of the sample of test texts: each text counts with its means over the seeds.
    counts, first = np.mean([own for own, _ in ours], axis=0), np.mean([own for _, own in ours], axis=0)
    drawn = np.random.default_rng(0).integers(len(asked), size=(BOOTSTRAP, len(asked)))
    with tempfile.TemporaryDirectory() as name:
        model.save(Path(name) / "model")
        again = load(Path(name) / "model")
        again.explain(asked[:1])
        explaining = [seconds(lambda text=text: again.explain([text])) for text in asked[:100]]  # type: ignore[misc]
    return {
        "ours": {
            "F1": float(np.mean([f1_of(own) for own, _ in ours])),
            "P@1": float(first.mean()),
            "seeds": SEEDS,
            "standard_error": {
                "F1": float(np.std([f1_of(counts[rows]) for rows in drawn])),
                "P@1": float(first.std() / np.sqrt(len(first))),
            },
        },
        "fit_seconds": float(np.mean(spent)),
        "explain_ms": 1000 * median(explaining),
        "support_vector_machine": {"F1": theirs[0], "P@1": theirs[1], "C": C, "sublinear": sublinear},
    }


def long_file(path: Path, gigabytes: float) -> int:
    """Write synthetic texts with Zipf-distributed words; returns their number."""
    rng = np.random.default_rng(0)
    names = [f"word{i}" for i in range(WORDS)]
    n = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < gigabytes * 1e9:
            drawn = (WORDS ** rng.random((1_000, WORDS_A_TEXT))).astype(int) - 1
            lines = [
                json.dumps(
                    {"text": " ".join(names[i] for i in row), "labels": [f"label{row.min() % LABELS}"]}
                )
                for row in drawn
            ]
            file.write("\n".join(lines) + "\n")
            n += len(lines)
    return n


def stream(path: Path) -> dict[str, Any]:
    """Run in its own process: read, vectorize, and fit a method that needs little memory itself."""
    from exmlds import MostFrequent

    model = TextClassifier(model=MostFrequent())
    before = peak_bytes()
    taken = seconds(lambda: model.fit(open_texts(path)))
    terms = int(model.n_features_in_)
    return {"seconds": taken, "peak_bytes": peak_bytes(), "bytes_before": before, "terms": terms}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--long", type=float, nargs="?", const=LONG, metavar="GB")
    parser.add_argument("--validation", action="store_true", help="training texts only")
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stream:
        print(json.dumps(stream(options.stream)))
        return
    name = "texts-validation" if options.validation else "texts"
    name = name if options.long is None else "texts-long"
    free = ["validation", *(["long"] if options.long == LONG else [])]
    path = destination(parser, options, name, free=free)
    if options.long:
        with tempfile.TemporaryDirectory() as folder:
            texts = Path(folder) / "long.jsonl"
            n = long_file(texts, options.long)
            command = [sys.executable, __file__, "--stream", str(texts)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            found |= {"texts": n, "file_bytes": texts.stat().st_size}
        print(found)
        write_results(path, found)
    else:
        books = make_library(300)
        ExMLDS(random_state=0).fit(books.X, books.Y).predict_topk(books.X)  # compile first
        found = chronological() if options.validation else reuters()
        print(json.dumps(found, indent=1))
        write_results(path, found)


if __name__ == "__main__":
    main()
