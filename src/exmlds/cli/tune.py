"""The command `exmlds tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .arguments import AsJson, LabelsFile, TrainingData, complete_method, finite
from .output import percent, print_table, say
from .settings import DEFAULT_METHOD
from .texts import (
    Analyzer,
    Encoding,
    EncodingErrors,
    FieldWeights,
    Format,
    LabelColumn,
    LabelSeparator,
    MaxWords,
    TextColumn,
    TextOptions,
    Vectorizer,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from .. import TextClassifier
    from ..data import Texts
    from ..selection import TuneTrial


def tune(
    data: TrainingData,
    output: Annotated[Path, Option("-o", "--output", help="The config file to write, for --config.")],
    time_budget: Annotated[
        float, Option(min=1, callback=finite, metavar="SECONDS", help="The approximate time limit.")
    ] = 600,
    labels: LabelsFile = None,
    method: Annotated[
        str | None, Option(help=f"The method.  [default: {DEFAULT_METHOD}]", autocompletion=complete_method)
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A parameter to keep fixed; may be repeated."),
    ] = None,
    config: Annotated[Path | None, Option(help="A TOML config file to start from.")] = None,
    vectorizer: Vectorizer = None,
    analyzer: Analyzer = None,
    max_words: MaxWords = None,
    field_weights: FieldWeights = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    seed: Annotated[int, Option(min=0, help="The random seed; it chooses the held-out rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Search for better parameters on held-out rows or texts, and write them to a config file."""
    from time import perf_counter

    from sklearn.base import clone

    from .. import TextClassifier, metrics, selection
    from ..errors import DataError
    from ..runtime import progress
    from ..storage.files import replacing
    from .output import print_json
    from .settings import as_toml, make_model, method_name
    from .sources import check_output, read
    from .texts import analysis, opened
    from .train import check_data

    model = make_model(method, config, [*(set_ or [])])
    fixed = {assignment.partition("=")[0].strip() for assignment in set_ or []}
    if "random_state" in fixed:
        raise DataError("--seed sets random_state; leave --set random_state out.")
    space = {name: values for name, values in model._space.items() if name not in fixed}
    if not space:
        raise DataError(f"{method_name(type(model).__name__)} has no parameter left to tune.")
    options = TextOptions(
        text_column, format, encoding_errors, label_column, label_separator, encoding=encoding
    )
    terms = analysis(analyzer, max_words, field_weights)
    path, is_texts = check_data(model, data, labels, options, vectorizer, terms=terms)
    check_output(output, path, labels, config)
    start = {name: model.get_params()[name] for name in space}
    round_length = 1 + sum(value != start[name] for name, values in space.items() for value in values)

    with progress.shown():
        model.set_params(random_state=seed)
        if is_texts:
            texts = TextClassifier(model, vectorizer=vectorizer or "tfidf", **terms)
            X, Y, analyzer = _vectorized(opened(path, options), texts)
        else:
            X, Y = read(data, "train", labels)[:2]
        train, held_out = selection.random_split(X.shape[0], 0.2, random_state=seed)

        def value_of(parameters: dict[str, Any]) -> float:
            tried = clone(model).set_params(**parameters).fit(X[train], Y[train])
            ranking = metrics.Ranking(Y[held_out], tried.predict_topk(X[held_out], 5), 5)
            return sum(ranking.value(f"P@{k}") for k in (1, 3, 5)) / 3

        trials: list[TuneTrial] = []
        started = perf_counter()
        with progress.stage("tuning", round(time_budget), unit="s") as advance:
            for trial in selection.tune(value_of, space, time_budget, start=start):
                trials.append(trial)
                if len(trials) == 1 and not as_json:
                    print(_forecast(trial.seconds, time_budget, round_length), file=sys.stderr)
                advance(round(perf_counter() - started))
                started = perf_counter()
    best = max(trials, key=lambda trial: trial.value)
    with replacing(output) as file:
        chosen = clone(model).set_params(**best.parameters, random_state=None)
        file.write(f"{as_toml(chosen)}\n".encode())
    if as_json:
        found = {"config": str(output), "analyzer": analyzer, "best": best._asdict()}
        print_json({**found, "trials": [t._asdict() for t in trials]})
        return
    _print(trials, best, round_length)
    same = f" --analyzer {analyzer}" if analyzer else ""  # the one that the parameters were tuned with
    if vectorizer or max_words or field_weights or options != TextOptions():
        same += " and the options for texts"
    say(f"Wrote {output}. Next: exmlds train {data} -o model --config {output}{same}")


def _vectorized(documents: Texts, classifier: TextClassifier) -> tuple[csr_matrix, csr_matrix, str | None]:
    """(n, d) vectors of the texts, as `exmlds train` makes them, (n, L) their labels, and the analyzer."""
    from ..validation.targets import encode

    labels: list[Any] = []
    vectorizer, X = classifier._fit_vectorizer(documents, labels)
    return X, encode(labels)[0], getattr(vectorizer, "analyzer", None)


def _forecast(seconds: float, time_budget: float, round_length: int) -> str:
    """How many settings the budget allows, by the time that the first one took."""
    allowed = max(1, int(time_budget / max(seconds, 1e-9)))
    share = f"about {allowed} of the" if allowed < round_length else "all"
    return (
        f"One setting takes about {seconds:.1f} s; {time_budget:g} s allow {share} {round_length} settings "
        "of a round."
    )


def _print(trials: list[TuneTrial], best: TuneTrial, round_length: int) -> None:
    from math import ceil

    rows = [(_parameters(t), percent(t.value), f"{t.seconds:.1f}") for t in trials]
    print_table(("parameters", "mean of P@1, 3, 5 on held-out rows", "seconds"), rows)
    n, seconds = len(trials), sum(trial.seconds for trial in trials)
    if n == 1:
        say(
            f"1 setting was tried in {seconds:.1f} s, so there is nothing to compare it with. A round has "
            f"{round_length} settings: allow about --time-budget {ceil(seconds * round_length)}."
        )
    elif not best.parameters:
        say(f"None of the {n - 1} other settings is better than the starting values ({seconds:.1f} s).")
    else:
        say(f"The best of {n} settings in {seconds:.1f} s: {_parameters(best)}.")


def _parameters(trial: TuneTrial) -> str:
    return ", ".join(f"{name}={value}" for name, value in trial.parameters.items()) or "starting values"
