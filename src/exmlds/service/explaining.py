"""Why a text gets a label, and what the model has learnt of a label, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..models.text import TextClassifier, TextWithFields
from ..voting.explain import Explanation
from .marks import feature_weights, marks, word_weights
from .problems import Problem
from .serving import ServedModel

EXCERPT = 500  # characters of a document
MARKED = 30  # features whose words are marked, for the label and against it
SIMILAR = 10  # labels
TYPICAL = 5  # documents of a label


def as_text(text: Any) -> Any:
    """A text of a request as a `TextClassifier` takes it; fields are joined by newlines."""
    if isinstance(text, str):
        return text
    fields = tuple(text.values())
    return TextWithFields("\n".join(fields), fields)


def explain(served: ServedModel, text: Any, id: str, n: int, language: str | None) -> dict[str, Any]:
    """Why the text has its score for the label with this id."""
    model, labels = served.model, served.labels
    labels.check_language(language)
    (why,) = model.explain([as_text(text)], labels.label(id), max(n, MARKED))
    plain = getattr(as_text(text), "text", text)
    weights = word_weights(model.vectorizer_, plain, feature_weights(why))
    strongest = sorted(weights, key=lambda word: -abs(weights[word]))[:n]
    return {
        **labels.short(id, language),
        "score": float(why.score),
        "documents": list(_voters(served, why, n, language)),
        "words": [{"word": word, "weight": weights[word]} for word in strongest],
        "marks": [mark._asdict() for mark in marks(plain, weights, why.matched)],
        "log_odds": [{"name": name, "value": float(value)} for name, value in why.log_odds.items()],
    }


def _voters(served: ServedModel, why: Explanation, n: int, language: str | None) -> Iterator[dict[str, Any]]:
    for voter in why.voters[:n]:
        yield {
            "id": str(voter.row) if voter.id is None else voter.id,
            "text": None if voter.text is None else voter.text[:EXCERPT],
            "labels": [served.labels.short(label, language) for label in _labels_of(served.model, voter.row)],
            "similarity": voter.similarity,
            "share": voter.share,
        }


def _labels_of(model: TextClassifier, row: int) -> list[Any]:
    """The labels of a training row that votes."""
    voting = model._voting_model()
    own = voting.labels[np.flatnonzero(voting.row_numbers == row)[0]]
    # Labels that a method has completed are below 1.
    return [model.model_._used_label(int(column)) for column in own.indices[own.data >= 1]]


def describe(served: ServedModel, id: str, language: str | None) -> dict[str, Any]:
    """A label, those that are similar to it, and documents that are typical of it."""
    model, labels = served.model, served.labels
    labels.check_language(language)
    label = labels.label(id)
    similar: list[tuple[Any, float]] = []
    typical: list[int] = []
    if labels.count(id) and hasattr(model._method, "similar_labels"):
        similar = model.similar_labels(label, SIMILAR)
        typical = [row for row, _ in model.typical_rows(label, TYPICAL)]
    return {
        **labels.described(id, language),
        "similar": [{**labels.short(other, language), "score": cosine} for other, cosine in similar],
        "documents": [
            {
                "id": model._id_of(row) or str(row),
                "text": None if model.texts_ is None else model.texts_[row][:EXCERPT],
            }
            for row in typical
        ],
    }


def document(served: ServedModel, id: str, language: str | None) -> dict[str, Any]:
    """A document that the model has learnt from, where it keeps documents."""
    model, labels = served.model, served.labels
    labels.check_language(language)
    growth = getattr(model, "growth_", None)
    if growth is None:
        raise Problem("unknown-document", "This model keeps no documents: train it with --growable.")
    found = np.flatnonzero((growth.ids == id) & ~growth.is_removed)
    if not len(found):
        raise Problem(
            "unknown-document", "Send the id of a document of the training data, or of one added since."
        )
    row = int(found[0])
    columns = growth.labels[row].indices
    return {
        "id": id,
        "text": model.texts_[row],
        "labels": [labels.short(model.model_._used_label(int(column)), language) for column in columns],
    }
