"""Compare TextClassifier, given a vocabulary, with Annif on titles of yso-finna-en and gutenberg-lcsh.

    EXMLDS_DATA=… python benchmarks/annif.py --validation     # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/annif.py --test           # the test rows, to be read rarely
    EXMLDS_DATA=… python benchmarks/annif.py --validation --rows 3000 --test-rows 500 --sets gutenberg-lcsh

pip installs Annif into its own environment under .peers/, as in `peers.py`, and every training and every
prediction runs in its own process (`annif_fit.py`) with the same number of threads. All systems read the same
files, in Annif's formats: a vocabulary of URIs with one name each, and a corpus of texts with URIs. The
names of yso-finna-en are those of YSO, in yso-en.tsv.gz; --vocabularies names its folder. The headings of
gutenberg-lcsh have no URIs, so each gets a made-up one, urn:lcsh:N.

Systems: "ours" is `TextClassifier(vocabulary=…)`. The others are projects of Annif with its analyzer
snowball(english) and the settings of the examples in its documentation:

- "omikuji": the Omikuji backend, whose defaults are those of Parabel.
- "mllm": lexical matching of names in the text. Its documentation recommends to train it on 100 to 10,000
  full documents, so it gets at most --mllm-rows training rows, 10,000 by default. The documents here are
  titles, and the vocabularies have neither alternative names nor relations, from which it would gain.
- "ensemble": the mean of the scores of these two, which is not trained.
- "nn-ensemble": the neural ensemble of the two, trained on a tenth of the training rows, at most 10,000 (its
  documentation recommends 1,000 to 10,000 documents). Its Omikuji project is trained on the others only. It
  needs TensorFlow; where that can't be installed, the system is listed as missing.

Figures: P@1, P@3, P@5 and nDCG@10 of the 10 best suggestions. `fit_seconds` is the time from the corpus to
the saved model, without that of loading the vocabulary; that of an ensemble includes its projects.
`ms_per_row` is the time of a document in batches. `against` is the difference of ours and the other system
with its 95% interval, by a paired bootstrap over rows, or without one where the other system was measured in
an earlier run. The seed is 0; Omikuji has none, and the figures of MLLM vary a little in spite of it. A
system that fails, or a process of which takes more than two hours or 20 GB, is listed as missing, with the
reason.

The results of a run with the default options go to results/, where each evaluation on test rows is logged.
Those of another run are printed, unless --output FILE names a file, which keeps its other figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from annif_fit import CORPORA, ROWS, TOP, VOCABULARY
from exmlds import metrics
from exmlds.data import available, find, read_names, read_texts, read_vocabulary
from exmlds.runtime.parallel import n_threads
from exmlds.selection import random_split
from measure import (
    destination,
    is_committed,
    log_reading,
    machine,
    parser_of,
    read_sets,
    several,
    write_results,
)
from peer_fit import MOST_BYTES
from peers import HOME, Failure, interpreter, run_process

SYSTEMS = {  # and the projects that are trained for each, in this order
    "ours": ("ours",),
    "omikuji": ("omikuji",),
    "mllm": ("mllm",),
    "ensemble": ("omikuji", "mllm"),
    "nn-ensemble": ("omikuji-part", "mllm", "nn-ensemble"),
}
VOCABULARIES = {"gutenberg-lcsh": None, "yso-finna-en": "yso-en.tsv.gz"}  # None: the names of the labels
MLLM_ROWS = 10_000
MIN_ROWS = 10
ENSEMBLE_ROWS, ENSEMBLE_SHARE = 10_000, 0.1  # at most, of the training rows
LIMIT = 2 * 60 * 60  # seconds, for one process
MEASURES = ("P@1", "P@3", "P@5", "nDCG@10")

Array = np.ndarray


class Documents(NamedTuple):
    """Texts and their labels, which are positions in the vocabulary."""

    texts: list[str]
    labels: list[list[int]]

    def rows(self, ids: Array) -> Documents:
        return Documents([self.texts[i] for i in ids], [self.labels[i] for i in ids])

    def sample(self, n: int | None) -> Documents:
        """At most n random rows, in their order."""
        if n is None or n >= len(self.texts):
            return self
        return self.rows(np.sort(np.random.default_rng(0).permutation(len(self.texts))[:n]))


class Subjects(NamedTuple):
    """A vocabulary: the labels in the data, and their URIs and names."""

    labels: list[str]
    uris: list[str]
    names: list[str]


def read_subjects(name: str, vocabularies: Path) -> Subjects:
    file = VOCABULARIES[name]
    if file is None:
        names = read_names(find(name, "train").parent / "label_names.txt")
        return Subjects(names, [f"urn:lcsh:{i}" for i in range(len(names))], names)
    vocabulary = read_vocabulary(vocabularies / file)
    return Subjects(vocabulary.ids, vocabulary.ids, [vocabulary.name(id) for id in vocabulary.ids])


def read_documents(name: str, split: str, subjects: Subjects) -> Documents:
    texts, labels = read_texts(find(name, split).parent / f"{split}.jsonl.gz")
    position = {label: i for i, label in enumerate(subjects.labels)}
    # A document is a line in Annif's corpora, without tabs.
    return Documents(
        [" ".join(text.split()) for text in texts], [[position[x] for x in row] for row in labels]
    )


def split_documents(
    name: str, subjects: Subjects, options: argparse.Namespace
) -> tuple[Documents, Documents]:
    """The training documents and those to predict."""
    train = read_documents(name, "train", subjects)
    if options.validation:
        kept, held_out = random_split(len(train.texts), 0.2, random_state=1)
        train, test = train.rows(kept), train.rows(held_out)
    else:
        test = read_documents(name, "test", subjects)
    return train.sample(options.rows), test.sample(options.test_rows)


def write_corpora(
    folder: Path, subjects: Subjects, train: Documents, test: Documents, mllm_rows: int
) -> dict[str, int]:
    """Write the files that `annif_fit.py` reads; return the sizes of the data."""
    n = len(train.texts)
    rest, held_out = random_split(n, min(ENSEMBLE_SHARE, ENSEMBLE_ROWS / n), random_state=0)
    part = train.rows(rest)
    corpora = dict.fromkeys(CORPORA, train)
    # MLLM is a part of both ensembles, so its rows are none of those that the neural one is trained on.
    corpora |= {"mllm": part.sample(mllm_rows), "omikuji-part": part}
    corpora["nn-ensemble"] = train.rows(held_out)
    for project, documents in corpora.items():
        uris = (" ".join(f"<{subjects.uris[i]}>" for i in row) for row in documents.labels)
        lines = (f"{text}\t{row}" for text, row in zip(documents.texts, uris))
        write_lines(folder / CORPORA[project], lines)
    write_lines(folder / VOCABULARY, (f"<{uri}>\t{name}" for uri, name in zip(subjects.uris, subjects.names)))
    write_lines(folder / ROWS, test.texts)
    return {
        "train": n,
        "test": len(test.texts),
        "labels": len({label for row in train.labels for label in row}),
        "names": len(subjects.names),
        "mllm_rows": len(corpora["mllm"].texts),
        "ensemble_rows": len(held_out),
    }


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class Runs:
    """The processes of one set, with a folder for its files and models; each project is trained once."""

    def __init__(self, folder: Path, python: str, failures: dict[str, str]) -> None:
        self.folder, self.python = folder, python
        self.trained: dict[str, float] = {}
        self.failures = dict(failures)  # the reasons, by project

    def fit_seconds(self, system: str) -> float:
        projects = SYSTEMS[system]
        for project in projects:
            if project in self.failures:
                raise Failure(self.failures[project])
        for project in projects:
            if project not in self.trained:
                try:
                    self.trained[project] = self._run("train", project)["seconds"]
                except Failure as failure:
                    self.failures[project] = str(failure)
                    raise
        return sum(self.trained[project] for project in projects)

    def suggest(self, system: str) -> tuple[dict[str, Any], Array]:
        """The seconds and the version, and (n, 10) positions in the vocabulary, best first."""
        return self._run("suggest", system), np.load(self.folder / f"{system}.npy")

    def _run(self, step: str, system: str) -> dict[str, Any]:
        threads, script = n_threads(None), str(Path(__file__).with_name("annif_fit.py"))
        python = sys.executable if system == "ours" else self.python
        arguments = [step, system, str(self.folder), str(threads), str(MOST_BYTES)]
        run_process([python, "-P", script, *arguments], threads, LIMIT)
        return json.loads((self.folder / f"{system}-{step}.json").read_text(encoding="utf-8"))


def installed(base: str) -> tuple[str, dict[str, str]]:
    """The interpreter of Annif's environment, and for projects that can't be trained in it the reason."""
    try:
        return interpreter("annif", base), {}
    except Failure as failure:
        reason = str(failure)
    try:
        return interpreter("annif-without-nn", base), {"nn-ensemble": reason}
    except Failure as failure:
        return "", dict.fromkeys(CORPORA.keys() - {"ours"}, str(failure))


def measure(system: str, runs: Runs, Y: csr_matrix) -> tuple[dict[str, Any], metrics.Ranking | None]:
    """The figures of a system and its ranking, or the reason of a failure and None."""
    here = machine()
    found: dict[str, Any] = {"measured": {key: here[key] for key in ("date", "commit", "cores")}}
    try:
        fit_seconds = runs.fit_seconds(system)
        figures, ids = runs.suggest(system)
    except Failure as failure:
        return {**found, "missing": str(failure)}, None
    ranking = metrics.Ranking(Y, ids, TOP)
    found |= {"version": figures["version"], **{name: ranking.value(name) for name in MEASURES}}
    found |= {"fit_seconds": fit_seconds, "ms_per_row": 1000 * figures["seconds"] / len(ids)}
    return found, ranking


def compare(entries: dict[str, Any], rankings: dict[str, metrics.Ranking]) -> None:
    """Add the difference of ours and each other system to its entry, with its interval in the same run."""
    if "ours" not in rankings:
        return
    for system, entry in entries.items():
        entry.pop("against", None)  # of an earlier measurement of ours
        if system in rankings.keys() - {"ours"}:
            found = metrics.compare_rankings(rankings["ours"], rankings[system], MEASURES)
            entry["against"] = {row.name: [row.difference, row.low, row.high] for row in found}
        elif system != "ours" and "missing" not in entry:
            entry["against"] = {name: [entries["ours"][name] - entry[name]] for name in MEASURES}


def shown(entry: dict[str, Any]) -> str:
    if "missing" in entry:
        return f"missing, {entry['missing']}"
    figures = "/".join(f"{100 * entry[name]:.2f}" for name in MEASURES)
    return f"{figures}, {entry['fit_seconds']:.1f} s, {entry['ms_per_row']:.2f} ms"


def count(text: str) -> int:
    """An argparse type: a number of rows."""
    if not text.isdecimal() or int(text) < MIN_ROWS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows, at least {MIN_ROWS}")
    return int(text)


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    sets, systems = [*VOCABULARIES], [*SYSTEMS]
    parser.add_argument("--sets", type=several(sets), default=sets, help=f"of {','.join(sets)}")
    parser.add_argument("--only", type=several(systems), default=systems, help=f"of {','.join(systems)}")
    parser.add_argument("--rows", type=count, metavar="N", help="so many training rows only")
    parser.add_argument("--test-rows", type=count, metavar="N", help="so many rows to predict only")
    parser.add_argument(
        "--mllm-rows", type=count, default=MLLM_ROWS, metavar="N", help="training rows of MLLM"
    )
    parser.add_argument(
        "--vocabularies",
        type=Path,
        default=Path(os.environ.get("EXMLDS_DATA", "")).parent / "vocabularies",
        metavar="FOLDER",
        help="the folder of yso-en.tsv.gz; by default, vocabularies/ beside the folder EXMLDS_DATA",
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter of Annif's environment")
    options = parser.parse_args()
    split = "validation" if options.validation else "test"
    missing = [name for name in options.sets if not is_there(name, options.vocabularies)]
    path = destination(
        parser,
        options,
        "annif-validation" if options.validation else "annif",
        free=("validation", "test", "vocabularies", "python"),
        missing=missing,
    )
    results = read_sets(path, split)
    HOME.mkdir(exist_ok=True)
    python, failures = ("", {}) if options.only == ["ours"] else installed(options.python)
    for name in options.sets:
        if name in missing:
            print(f"{name} is left out: its texts or its vocabulary are not there", file=sys.stderr)
            continue
        entries = results.get(name, {}).get("systems", {})
        rankings: dict[str, metrics.Ranking] = {}
        subjects = read_subjects(name, options.vocabularies)
        train, test = split_documents(name, subjects, options)
        Y = label_matrix(test, len(subjects.uris))
        with tempfile.TemporaryDirectory(dir=HOME) as folder:
            sizes = write_corpora(Path(folder), subjects, train, test, options.mllm_rows)
            runs = Runs(Path(folder), python, failures)
            for system in (system for system in SYSTEMS if system in options.only):
                entries[system], ranking = measure(system, runs, Y)
                rankings |= {} if ranking is None else {system: ranking}
                print(f"{name} {system}: {shown(entries[system])}", flush=True)
                compare(entries, rankings)
                ordered = {key: entries[key] for key in SYSTEMS if key in entries}
                results[name] = {**sizes, "systems": ordered}
                if path is not None:  # after each system, because a run takes hours
                    write_results(path, {"split": split, "sets": dict(sorted(results.items()))})
                if system == "ours" and ranking is not None and options.test and is_committed(path):
                    log_reading("annif", {name: {"ours": entries["ours"]}})
    if path is None:
        write_results(None, {"split": split, "sets": dict(sorted(results.items()))})


def is_there(name: str, vocabularies: Path) -> bool:
    """Whether the texts and the vocabulary of a set exist."""
    if name not in available():
        return False
    folder, file = find(name, "train").parent, VOCABULARIES[name]
    needed = [folder / f"{split}.jsonl.gz" for split in ("train", "test")]
    needed.append(folder / "label_names.txt" if file is None else vocabularies / file)
    return all(path.is_file() for path in needed)


def label_matrix(documents: Documents, n_labels: int) -> csr_matrix:
    """(n, n_labels) csr of ones"""
    indptr = np.cumsum([0, *map(len, documents.labels)])
    indices = np.array([label for row in documents.labels for label in row])
    return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(indptr) - 1, n_labels))


if __name__ == "__main__":
    main()
