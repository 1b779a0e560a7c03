"""The command `exmlds explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from .arguments import AsJson, ModelFolder, complete_data
from .output import named, print_json, print_table, say, short
from .settings import OwnMethod, Trusted, load_model
from .startup import import_for_prediction
from .texts import (
    Encoding,
    EncodingErrors,
    Format,
    GivenText,
    IdColumn,
    Language,
    TextColumn,
    TextOptions,
    set_language,
    takes_texts,
)

if TYPE_CHECKING:
    from ..voting.explain import Explanation


def explain(
    model: ModelFolder,
    data: Annotated[
        str | None,
        Argument(
            metavar="DATA",
            help="A file, a folder of documents, or the name of a data set.",
            autocompletion=complete_data,
        ),
    ] = None,
    text: GivenText = None,
    label: Annotated[
        str | None,
        Option(
            help="The label to explain, or its name in the vocabulary.  "
            "[default: the one with the highest score]"
        ),
    ] = None,
    row: Annotated[
        str | None,
        Option(
            metavar="ID|N",
            help="The row of DATA to explain: the id of a document, or a number, counted from 0.  "
            "[default: the first row]",
        ),
    ] = None,
    n: Annotated[int, Option("-n", min=1, help="The number of voters and features to show.")] = 5,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    language: Language = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Explain the score of a label: which neighbours voted, what its classifier saw, how frequent it is.

    The ids of documents are those of the data, as in `exmlds report` and `exmlds predict`; without any, rows
    are counted from 0 here, and from 1 by `predict`. If a value of --row is an id and also the number of
    another row, it means the id; the output names the row by both. An id that several documents have is an
    error.
    """
    import_for_prediction()
    from ..errors import DataError
    from .sources import known_label, one_row, refuse_swapped

    refuse_swapped("explain MODEL DATA", model, data)
    fitted: Any = load_model(model, method, trusted)
    set_language(fitted, model, language)
    known = None if label is None else known_label(fitted, model, label)
    options = TextOptions(text_column, format, encoding_errors, id=id_column, encoding=encoding)
    options.check_given_text(text)
    query = one_row(fitted, model, data, text, row, options)
    try:
        (why,) = fitted.explain(query.X, known, n, feature_names=query.feature_names)
    except NotImplementedError as error:
        raise DataError(str(error)) from None
    texts = getattr(fitted, "texts_", None)
    if as_json:
        print_json(query.names() | _plain(why))
    else:
        if takes_texts(fitted) and text is None:
            id = "" if query.id is None else f" (id {query.id})"
            say(f"Row {query.number}{id}: {short(query.X[0])}")
        _show(why, "training row" if texts is None else "training text")
        if takes_texts(fitted) and texts is None and why.voters:
            say("Training texts are shown where they were kept: exmlds train --keep-rows")


def _plain(why: Explanation) -> dict[str, Any]:
    found = why._asdict()
    found["voters"] = [
        {**voter._asdict(), "terms": [list(term) for term in voter.terms]} for voter in why.voters
    ]
    if why.margin is not None:
        margin = why.margin._asdict()
        found["margin"] = {
            name.rstrip("_"): [list(term) for term in value] if isinstance(value, list) else value
            for name, value in margin.items()
        }
    return found


def _show(why: Explanation, voters: str) -> None:
    say(f"{why.shown_label}: score {why.score:.3f}; {100 * why.prior:.2f}% of the training rows have it")
    if why.matched:
        say(f"Its name stands in the text: {', '.join(why.matched)}")
    if not (why.prior or why.votes):
        return
    print()
    rows: list[tuple[str, str, str, str]] = [
        (
            str(voter.row) if voter.text is None else named(voter.text, voter.id),
            f"{voter.share:.3f}",
            f"{voter.similarity:.3f}",
            _terms(voter.terms),
        )
        for voter in why.voters
    ]
    if why.other_voters:
        rows.append(("other voters", f"{why.other_voters:.3f}", "", ""))
    if why.prior_or_label_score:
        rows.append(("label similarity or prior", f"{why.prior_or_label_score:.3f}", "", ""))
    rows.append(("total", f"{why.votes:.3f}", "", ""))
    print_table((voters, "share of the vote", "similarity", "shared features"), rows, title="Votes")
    if why.margin is not None:
        terms = [
            ("for", _terms(why.margin.for_), f"{sum(t.weight for t in why.margin.for_):+.3f}"),
            ("against", _terms(why.margin.against), f"{sum(t.weight for t in why.margin.against):+.3f}"),
            ("other features", "", f"{why.margin.rest:+.3f}"),
            ("bias", "", f"{why.margin.bias:+.3f}"),
            ("total", "", f"{why.margin.value:+.3f}"),
        ]
        print_table(("classifier", "features", "margin"), terms, title="The label's classifier")
    if why.log_odds:
        odds = [(kind, f"{value:+.2f}") for kind, value in why.log_odds.items()]
        odds.append(("total", f"{sum(why.log_odds.values()):+.2f}"))
        odds.append(("score", f"{why.score:.3f}"))
        print_table(("evidence", "log-odds"), odds, title="Score")


def _terms(terms: Any) -> str:
    return ", ".join(f"{term.feature} {term.weight:+.2f}" for term in terms)
