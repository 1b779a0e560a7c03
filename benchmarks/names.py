"""What the names of labels add to TextClassifier: accuracy, time, and labels that no training text has.

    EXMLDS_DATA=… python benchmarks/names.py --validation   # a fifth of the training texts
    EXMLDS_DATA=… python benchmarks/names.py --test         # the test texts, to be read rarely
    EXMLDS_DATA=… python benchmarks/names.py --validation --hidden 6 --sets gutenberg-lcsh

The sets are titles: gutenberg-lcsh, whose labels are headings such as "Golf -- Poetry" and are their own
names, and yso-finna-en, whose labels are URIs with names in yso-en.tsv.gz, which is looked for in the folder
`vocabularies` beside EXMLDS_DATA (`--vocabularies` names another one).

With and without the vocabulary, the same texts are fitted in turns. Then HIDDEN random labels are hidden from
the training texts, which are kept without them. A true pair of a text and such a label counts as named where
the name, or the heading before "--", stands in the text: its words one after the other, by their stems. The
results give the share of the pairs that are named, the share of these among the first ten labels, and the
share of hidden labels among the first labels that are wrong.

Larger sets are fitted once, the others with three seeds, and both with as many as --seeds says. With
--hidden N, labels are hidden only, on N validation splits, each with hidden labels of its own; no setting was
chosen on these splits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

import numpy as np
import Stemmer

from exmlds import ExMLDS, TextClassifier, metrics
from exmlds.data import Vocabulary, find, read_texts, read_vocabulary
from exmlds.models.name_matcher import words_of
from exmlds.selection import random_split
from measure import destination, is_committed, log_reading, parser_of, seconds, several, write_results

SETS = ("gutenberg-lcsh", "yso-finna-en")
LARGE = 200_000  # training texts from which on a set is fitted once
SEEDS = 3
HIDDEN = 2_000
TEXTS_ONE_BY_ONE = 300
FIRST_SPLIT = 200  # seed of the first split of --hidden; settings were chosen on splits with smaller ones
MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "R@5")

Labels = list[list[str]]
Split = tuple[list[str], Labels, list[str], Labels]


def read(name: str, validation: bool, rows: int | None, split: int = 0) -> Split:
    """Training texts and their labels, and those to predict.

    split : seed of the validation split
    """
    folder = find(name, "train").parent
    texts, labels = read_texts(folder / "train.jsonl.gz")
    if validation:
        train, held = (part.tolist() for part in random_split(len(texts), 0.2, random_state=split))
        asked, true = [texts[i] for i in held], [labels[i] for i in held]
        texts, labels = [texts[i] for i in train], [labels[i] for i in train]
    else:
        asked, true = read_texts(folder / "test.jsonl.gz")
    return texts[:rows], labels[:rows], asked, true


def vocabulary_of(name: str, folder: Path) -> Vocabulary:
    if name == "yso-finna-en":
        return read_vocabulary(folder / "yso-en.tsv.gz")
    names = find(name, "train").parent / "label_names.txt"
    return read_vocabulary(names, format="list", language="en")


def fitted(data: Split, vocabulary: Vocabulary | None, seed: int) -> tuple[TextClassifier, float]:
    model = TextClassifier(ExMLDS(random_state=seed), vocabulary=vocabulary)
    return model, seconds(lambda: model.fit(data[0], data[1]))


def measured(model: TextClassifier, data: Split) -> dict[str, float]:
    truth = model.label_matrix(data[3], unknown="append")
    ranking = metrics.Ranking(truth, model.predict_topk(data[2], 5), 5)
    return {name: 100 * ranking.value(name) for name in MEASURES}


def ms_one_by_one(model: TextClassifier, texts: Sequence[str]) -> float:
    model.predict_topk([texts[0]])
    return 1000 * median(seconds(lambda text=text: model.predict_topk([text])) for text in texts)  # type: ignore[misc]


def accuracy(data: Split, vocabulary: Vocabulary, n_seeds: int | None) -> dict[str, Any]:
    """The figures with names and without, seed by seed in turns."""
    n_seeds = n_seeds or (1 if len(data[0]) >= LARGE else SEEDS)
    runs: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    for seed in range(n_seeds):
        for key, own in (("without", None), ("with", vocabulary)):
            model, taken = fitted(data, own, seed)
            one = ms_one_by_one(model, data[2][:TEXTS_ONE_BY_ONE])
            runs[key].append({**measured(model, data), "fit_seconds": taken, "ms_one_text": one})
            print(key, seed, {name: round(value, 2) for name, value in runs[key][-1].items()}, flush=True)
    found: dict[str, Any] = {
        key: {name: mean(run[name] for run in each) for name in each[0]} for key, each in runs.items()
    }
    for key, each in runs.items():
        found[key]["spread"] = {name: pstdev(run[name] for run in each) for name in MEASURES[:3]}
    pairs = zip(runs["with"], runs["without"])
    found["times"] = mean(named["fit_seconds"] / plain["fit_seconds"] for named, plain in pairs)
    return {**found, "seeds": n_seeds, "runs": runs}


def stems(text: str, stemmer: Any = Stemmer.Stemmer("english", 0)) -> str:  # noqa: B008
    """The stems of the words of a text, with a space before and after each."""
    return f" {' '.join(stemmer.stemWords(words_of(text)))} "


def hidden_labels(data: Split, vocabulary: Vocabulary, seed: int) -> dict[str, float]:
    """Hide random labels from the training texts, and look for them where their names stand in a text."""
    texts, labels, asked, true = data
    used = sorted({label for row in labels for label in row})
    drawn = np.random.default_rng(seed).permutation(len(used))[:HIDDEN]
    hidden = {used[i] for i in drawn}
    kept = [[label for label in row if label not in hidden] for row in labels]
    model, _ = fitted((texts, kept, asked, true), vocabulary, seed)
    ids, _ = model.predict_topk(asked, 10)
    first_ten = [[model.classes_[column] for column in row if column >= 0] for row in ids]
    forms = {
        label: {stems(vocabulary.name(label)), stems(vocabulary.name(label).split("--")[0])} - {"  "}
        for label in hidden
    }
    pairs = named = found = 0
    for text, own, predicted in zip(asked, true, first_ten):
        its_stems = stems(text) if hidden.intersection(own) else ""
        for label in hidden.intersection(own):
            pairs += 1
            if any(form in its_stems for form in forms[label]):
                named += 1
                found += label in predicted
    wrong = [predicted[0] for own, predicted in zip(true, first_ten) if predicted and predicted[0] not in own]
    return {
        "labels": len(hidden),
        "pairs": pairs,
        "named": named / pairs,
        "named_in_ten": found / max(named, 1),
        "wrong_first": sum(label in hidden for label in wrong) / max(len(wrong), 1),
    }


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    parser.add_argument("--sets", type=several(SETS), default=[*SETS], help="separated by commas")
    parser.add_argument("--rows", type=int, metavar="N", help="the first N training texts")
    parser.add_argument("--seeds", type=int, metavar="N", help="for sets of any size")
    parser.add_argument("--hidden", type=int, metavar="N", help="hide labels only, on N validation splits")
    parser.add_argument("--vocabularies", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.hidden and not options.validation:
        parser.error("--hidden N takes validation splits, so it needs --validation")
    file = "names-validation" if options.validation else "names"
    path = destination(parser, options, file, free=("validation", "test", "vocabularies"))
    folder = options.vocabularies or Path(os.environ["EXMLDS_DATA"]).parent / "vocabularies"
    sets: dict[str, Any] = {}
    if path is not None and path.exists():
        sets = json.loads(path.read_text(encoding="utf-8"))["sets"]
    ExMLDS(random_state=0).fit(np.eye(60), np.eye(60))  # compile first
    for name in options.sets:
        data, vocabulary = read(name, options.validation, options.rows), vocabulary_of(name, folder)
        warm_up = TextClassifier(vocabulary=vocabulary).fit(data[0][:2_000], data[1][:2_000])
        warm_up.predict_topk(data[2][:100])
        sizes = {"train": len(data[0]), "test": len(data[2]), "concepts": len(vocabulary)}
        if options.hidden:
            splits = []
            for seed in range(options.hidden):
                data = read(name, True, options.rows, FIRST_SPLIT + seed)
                splits.append(hidden_labels(data, vocabulary, seed))
                print(name, seed, splits[-1], flush=True)
            sets[name] = {**sets.get(name, {}), **sizes, "hidden_on_splits": splits}
        else:
            sets[name] = {**sizes, **accuracy(data, vocabulary, options.seeds)}
            sets[name]["hidden"] = hidden_labels(data, vocabulary, 0)
            print(name, sets[name]["hidden"], flush=True)
        if options.test and path is not None and is_committed(path):
            log_reading("names", {name: sets[name]["with"]})
        write_results(path, {"split": "validation" if options.validation else "test", "sets": sets})


if __name__ == "__main__":
    main()
