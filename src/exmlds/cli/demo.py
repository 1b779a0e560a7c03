"""The command `exmlds demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .arguments import AsJson

if TYPE_CHECKING:
    from ..data import Dataset


def demo(
    rows: Annotated[int, Option(min=100, help="The number of books to generate.")] = 3000,
    seed: Annotated[int, Option(min=0, help="The random seed; it determines the books.")] = 0,
    output: Annotated[
        Path | None, Option("-o", "--output", help="A folder to write the generated data files to.")
    ] = None,
    serve: Annotated[
        bool, Option("--serve", help="Train a model of texts that can grow, and serve it with its page.")
    ] = False,
    port: Annotated[int, Option(min=0, max=65535, help="The port of --serve; 0 takes a free one.")] = 8000,
    as_json: AsJson = False,
) -> None:
    """Train and evaluate models on synthetic data, and show some predictions.

    With --serve, a model of the generated books is served until Ctrl-C: the page is at the address that is
    printed. The model and the feedback are in the folder of --output, or in a temporary one that is removed.
    """
    from time import perf_counter

    from .. import ExMLDS, FeatureNeighbors, MostFrequent, metrics
    from ..data import make_library
    from ..runtime import progress
    from ..selection import random_split
    from .output import percent, print_json, print_table, say
    from .sources import check_output_folder

    if output is not None:
        check_output_folder(output)
    books = make_library(rows, random_state=seed)
    if serve:
        _serve(output, books, seed, port)
        return
    train_rows, test_rows = random_split(rows, 0.2, random_state=seed)
    train, test = books.rows(train_rows), books.rows(test_rows)
    names = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")
    results: list[dict[str, Any]] = []
    with progress.shown():
        # A first fit compiles the kernels, so that the times below do not include it.
        for warm_up in (FeatureNeighbors(), ExMLDS()):
            warm_up.fit(train.X[:60], train.Y[:60]).predict_topk(test.X)
        for method in (MostFrequent, FeatureNeighbors, ExMLDS):
            started = perf_counter()
            model = method(random_state=seed).fit(train.X, train.Y, label_names=books.label_names)
            seconds = perf_counter() - started
            report = metrics.report(
                test.Y, model.predict_topk(test.X, 5), inverse_propensity=metrics.inverse_propensity(train.Y)
            )
            values = {name: report[name] for name in names}
            results.append({"method": method.__name__, **values, "seconds": seconds})
    if output is not None:
        _write(output, books, train, test)
    if as_json:
        print_json({"train": len(train_rows), "test": len(test_rows), "results": results})
        return
    print(f"A synthetic library, {books!r}; {len(test_rows):,} of its books are the test set.\n")
    print_table(
        ("method", *names, "seconds"),
        [(r["method"], *(percent(r[name]) for name in names), f"{r['seconds']:.2f}") for r in results],
    )

    assert books.label_names is not None
    assert books.feature_names is not None
    examples = []
    for row, predicted in enumerate(model.predict_labels(test.X[:6], k=3)):
        words = [books.feature_names[j] for j in test.X[row].indices[:7]]
        true = {books.label_names[j] for j in test.Y[row].indices}
        marked = [f"{label} ✓" if label in true else label for label in predicted]
        examples.append((" ".join(words), ", ".join(sorted(true)), ", ".join(marked)))
    print_table(("words of a book", "true labels", f"{type(model).__name__} predicts"), examples)
    if output is None:
        print("Next: exmlds train YOUR_FILE -o model; exmlds evaluate model TEST_FILE; exmlds --help")
    else:
        say(f"Wrote the data files. Next: exmlds train {output}/train.txt.gz -o model")


def _serve(output: Path | None, books: Dataset, seed: int, port: int) -> None:
    """Serve a model of the books as texts."""
    import sys
    from tempfile import TemporaryDirectory

    from .. import ExMLDS, TextClassifier
    from ..runtime import progress
    from .serve import check_packages, run

    check_packages()
    assert books.feature_names is not None
    assert books.label_names is not None
    texts = [" ".join(books.feature_names[word] for word in row.indices) for row in books.X]
    labels = [[books.label_names[label] for label in row.indices] for row in books.Y]
    with TemporaryDirectory(prefix="exmlds-demo-") as temporary:
        folder = Path(temporary) if output is None else output
        folder.mkdir(parents=True, exist_ok=True)
        with progress.shown():
            model = TextClassifier(ExMLDS(effort="fast", random_state=seed), growable=True).fit(texts, labels)
        model.save(folder / "library")
        print(f"A text to begin with: {texts[0]}", file=sys.stderr)
        if output is None:
            print("The model and what you add are removed at the end; -o FOLDER keeps them.", file=sys.stderr)
        feedback = folder / "library.feedback.jsonl"
        run(host="127.0.0.1", port=port, model=folder / "library", name="library", feedback=feedback)


def _write(output: Path, books: Dataset, train: Dataset, test: Dataset) -> None:
    from ..data import write_xc
    from ..storage.files import replacing

    output.mkdir(parents=True, exist_ok=True)
    for name, split in (("train", train), ("test", test)):
        write_xc(output / f"{name}.txt.gz", split)
    for name, lines in (("label_names", books.label_names), ("feature_names", books.feature_names)):
        with replacing(output / f"{name}.txt") as file:
            file.write("".join(f"{line}\n" for line in lines or []).encode())
