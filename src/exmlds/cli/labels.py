"""The command `exmlds labels`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from .arguments import AsJson, ModelFolder
from .settings import OwnMethod, Trusted, load_model
from .texts import Language, set_language


def labels(
    model: ModelFolder,
    similar: Annotated[
        str | None, Option(help="Show the labels most similar to this one, by cosine.")
    ] = None,
    search: Annotated[
        str | None, Option(help="Show the labels whose names, in any language, contain this.")
    ] = None,
    typical: Annotated[
        str | None, Option(help="Show the training rows that are most typical of this label.")
    ] = None,
    n: Annotated[int, Option("-n", min=1, help="The number of labels or rows to show.")] = 10,
    language: Language = None,
    method: OwnMethod = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Show the labels of a model: the most frequent, by name, similar ones, or the typical rows of one."""
    import numpy as np

    from ..errors import DataError
    from .output import print_json, print_table, say
    from .settings import method_name
    from .sources import known_label

    fitted: Any = load_model(model, method, trusted)
    set_language(fitted, model, language)
    vocabulary = getattr(fitted, "vocabulary_", None)
    names, counts = fitted.classes_.tolist(), fitted.label_counts_
    columns = {str(name): column for column, name in enumerate(names)}
    if sum(option is not None for option in (similar, search, typical)) > 1:
        raise DataError("Pass only one of --similar, --search and --typical.")
    inner = fitted._method
    if (similar or typical) is not None and not hasattr(inner, "similar_labels"):
        trained_by = method_name(type(inner).__name__)
        raise DataError(f"{model} was trained by {trained_by}, which has no label embeddings.")
    if typical is not None:
        _show_rows(fitted, fitted.typical_rows(known_label(fitted, model, typical), n), as_json)
        return
    if similar is not None:
        shown = fitted.similar_labels(known_label(fitted, model, similar), n)
    else:
        by_count = np.argsort(-counts, kind="stable").tolist()
        named = (
            set() if vocabulary is None or search is None else set(vocabulary.search(search, len(vocabulary)))
        )
        found = [
            column
            for column in by_count
            if search is None or search.lower() in str(names[column]).lower() or names[column] in named
        ]
        if not found:
            raise DataError(f"{model} has no label with {search!r} in its name.")
        shown = [(names[column], None) for column in found[:n]]
    if as_json:
        print_json(
            [
                {"label": name, "rows": int(counts[columns[str(name)]])}
                | ({} if vocabulary is None else {"name": fitted.label_name(name)})
                | ({} if cosine is None else {"cosine": round(cosine, 6)})
                for name, cosine in shown
            ]
        )
        return
    if not shown:
        say(f"No label of {model} is similar to {similar}.")
        return
    rows = [
        (
            *([] if vocabulary is None else [fitted.label_name(name)]),
            str(name),
            int(counts[columns[str(name)]]),
            *([] if cosine is None else [f"{cosine:.3f}"]),
        )
        for name, cosine in shown
    ]
    headings = ("label",) if vocabulary is None else ("name", "label")
    print_table((*headings, "rows", *([] if similar is None else ["cosine"])), rows)


def _show_rows(fitted: Any, found: list[tuple[int, float]], as_json: bool) -> None:
    from .output import named, print_json, print_table

    texts = getattr(fitted, "texts_", None)
    if as_json:
        print_json(
            [
                {"row": row, "cosine": round(cosine, 6)}
                | ({} if texts is None else {"text": texts[row], "id": fitted._id_of(row)})
                for row, cosine in found
            ]
        )
        return
    rows = [
        (row if texts is None else named(texts[row], fitted._id_of(row)), f"{cosine:.3f}")
        for row, cosine in found
    ]
    print_table(("training row" if texts is None else "training text", "cosine"), rows)
