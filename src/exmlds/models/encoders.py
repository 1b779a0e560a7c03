"""Dense encoders of texts, and unions of vectorizers and encoders.

An encoder is any object with `encode(texts)`, which returns an (n, r) array, such as a model of
sentence-transformers. A model folder holds no code: an encoder is saved by the import name of its class and
the parameters of its `get_params`, if it has that method, and `load` imports only what is `trusted`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.preprocessing import normalize

from ..base import trusted_names
from ..errors import ModelError
from ..validation import stored
from . import vectorizers
from .analyzers import TermVectorizer

Array = np.ndarray
Text = str | Sequence[str]


def is_encoder(value: Any) -> bool:
    """Whether a vectorizer is an encoder: an object, not a class, with a method `encode`."""
    return callable(getattr(value, "encode", None)) and not isinstance(value, (str, type))


class EncoderVectorizer:
    """An encoder as a vectorizer: (n, r) csr rows of length 1."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.n_columns_: int | None = None

    def transform(self, texts: Iterable[Text]) -> csr_matrix:
        """(n, r) float32 the rows of texts; a ValueError unless the encoder gives finite numbers for each."""
        given, name = [joined(text) for text in texts], type(self.encoder).__name__
        rows = np.asarray(self.encoder.encode(given))
        if rows.ndim != 2 or len(rows) != len(given) or rows.dtype.kind not in "iuf":
            raise ValueError(
                f"encode of {name} must return an array of numbers with one row for each of {len(given)} "
                f"texts. Got {rows.dtype} of shape {rows.shape} instead."
            )
        if not np.isfinite(rows).all():
            raise ValueError(f"encode of {name} must return finite numbers. Got NaN or infinity instead.")
        if self.n_columns_ not in (None, rows.shape[1]):
            raise ValueError(
                f"encode of {name} returned {rows.shape[1]} columns, but the model was fitted with "
                f"{self.n_columns_}."
            )
        self.n_columns_ = rows.shape[1]
        return csr_matrix(normalize(rows.astype(np.float32)))

    def get_feature_names_out(self) -> Array:
        """(r,) names such as "Encoder[0]"."""
        name = type(self.encoder).__name__
        return np.array([f"{name}[{column}]" for column in range(self.n_columns_ or 0)], object)


class UnionVectorizer:
    """The columns of several fitted vectorizers side by side; each part of a row has length 1."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def transform(self, texts: Iterable[Text]) -> csr_matrix:
        """(n, d) float32 the rows of texts."""
        given = list(texts)
        return self.union([transformed(part, given) for part in self.parts])

    @staticmethod
    def union(rows: Sequence[csr_matrix]) -> csr_matrix:
        """(n, d) float32 the rows of all parts side by side."""
        return csr_matrix(hstack([normalize(part) for part in rows], format="csr"), dtype=np.float32)

    def get_feature_names_out(self) -> Array:
        """(d,) the names of all columns; numbers where a part has none, as hashed terms."""
        names: list[Any] = []
        for part in self.parts:
            if hasattr(part, "get_feature_names_out"):
                names.extend(part.get_feature_names_out())
            else:
                names.extend(f"{type(part).__name__}[{column}]" for column in range(part.n_features))
        return np.array(names, object)


def has_encoder(vectorizer: Any) -> bool:
    """Whether a fitted vectorizer, or a part of a union, is an encoder."""
    if isinstance(vectorizer, UnionVectorizer):
        return any(map(has_encoder, vectorizer.parts))
    return isinstance(vectorizer, EncoderVectorizer)


def transformed(vectorizer: Any, texts: Sequence[Text]) -> csr_matrix:
    """(n, d) float32 rows by a fitted vectorizer; the fields of a text are joined where it takes strings."""
    if isinstance(vectorizer, (TermVectorizer, EncoderVectorizer)):
        return vectorizer.transform(texts)
    return csr_matrix(vectorizer.transform([joined(text) for text in texts]), dtype=np.float32)


def joined(text: Text) -> str:
    """A text as one string; its fields are joined by newlines."""
    return text if isinstance(text, str) else "\n".join(text)


def describe(encoder: Any) -> dict[str, Any]:
    """The import name and the parameters of an encoder, as a manifest holds them."""
    kind = type(encoder)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        raise ModelError(
            f"A model with the encoder {kind.__qualname__} cannot be saved: define its class in a module "
            "that can be imported, not in a function, a script or a notebook."
        )
    parameters = encoder.get_params(deep=False) if hasattr(encoder, "get_params") else {}
    try:
        json.dumps(parameters)
    except (TypeError, ValueError):
        raise ModelError(
            f"A model with the encoder {kind.__qualname__} cannot be saved: its parameters must be plain "
            "values."
        ) from None
    return {"encoder": f"{kind.__module__}:{kind.__qualname__}", "parameters": parameters}


def restore(kept: Mapping[str, Any]) -> Any:
    """The encoder of a manifest; a ModelError unless its class is trusted."""
    name, parameters = kept["encoder"], kept["parameters"]
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise ValueError("an encoder has no name or no parameters")
    if name not in trusted_names():
        raise ModelError(
            f"The model has an encoder {name!r}, whose code is not in the folder. If you trust that code, "
            f"pass trusted=[{name!r}] to `exmlds.load`, or --trusted {name} to a command."
        )
    module, _, path = name.partition(":")
    try:
        kind: Any = import_module(module)
        for part in path.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelError(f"The encoder {name!r} cannot be imported: {error}.") from None
    encoder = kind(**parameters)
    if not is_encoder(encoder):
        raise ModelError(f"{name!r} is not an encoder: it has no method encode.")
    return encoder


def describe_any(vectorizer: Any) -> Any:
    """A parameter `vectorizer` as a manifest holds it: a name, or the parameters of one or of several."""
    if isinstance(vectorizer, str):
        return vectorizer
    if isinstance(vectorizer, (list, tuple)):
        return [describe_any(part) for part in vectorizer]
    return describe(vectorizer) if is_encoder(vectorizer) else vectorizers.describe(vectorizer)


def restore_any(kept: Any) -> Any:
    """The parameter `vectorizer` that `describe_any` has described."""
    if isinstance(kept, str):
        return kept
    if isinstance(kept, list):
        return [restore_any(part) for part in kept]
    return restore(kept) if "encoder" in kept else vectorizers.restore(kept)


def fitted_state(vectorizer: Any) -> dict[str, Any]:
    """A fitted vectorizer of a union, or the union itself, as a model folder holds it."""
    if isinstance(vectorizer, UnionVectorizer):
        return {"class": "UnionVectorizer", "parts": [fitted_state(part) for part in vectorizer.parts]}
    if isinstance(vectorizer, TermVectorizer):
        return vectorizer.plain()
    if isinstance(vectorizer, EncoderVectorizer):
        kept = {**describe(vectorizer.encoder), "n_columns": vectorizer.n_columns_}
        return {"class": "EncoderVectorizer", **kept}
    has_terms = hasattr(vectorizer, "get_feature_names_out")
    terms = vectorizer.get_feature_names_out().astype(object) if has_terms else None
    return {**vectorizers.fitted_state(vectorizer), "terms": terms}


def restore_fitted(kept: Mapping[str, Any], given: Any = ()) -> Any:
    """The fitted vectorizer that `fitted_state` has described.

    given : the restored parameter `vectorizer`, whose encoders are used again: some take long to load
    """
    if kept["class"] == "UnionVectorizer":
        return UnionVectorizer([restore_fitted(part, given) for part in kept["parts"]])
    if kept["class"] == "TermVectorizer":
        return TermVectorizer.restored(kept)
    if kept["class"] == "EncoderVectorizer":
        there = filter(is_encoder, given if isinstance(given, (list, tuple)) else [given])
        own = {name: kept[name] for name in ("encoder", "parameters")}
        encoder = next((one for one in there if describe(one) == own), None)
        vectorizer = EncoderVectorizer(restore(kept) if encoder is None else encoder)
        vectorizer.n_columns_ = stored.whole(kept["n_columns"], "the number of columns", 1)
        return vectorizer
    return vectorizers.restore_fitted(kept, kept["terms"])
