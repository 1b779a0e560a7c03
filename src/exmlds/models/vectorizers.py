"""Vectorizers of scikit-learn in model folders: class and parameters, within limits, without code.

A model folder may come from anywhere, and a vectorizer with other parameters could read files
(`input="filename"`) or take forever (a token pattern with nested repetitions). What `restore` takes is
therefore listed here; `describe`, which saves, refuses everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from ..errors import ModelError
from ..validation import params, stored
from ..validation.params import Constraint

KINDS = {kind.__name__: kind for kind in (TfidfVectorizer, CountVectorizer, HashingVectorizer)}

# A sequence of characters, classes and word boundaries; repetitions are of single ones, and never nested.
_ATOM = r"(?:\\[bBwWdDsS]|\\[^\w\s]|\[\^?(?:\\[wWdDsS]|\\[^\w\s]|[^\[\]\\])+\]|[^\\\[\](){}|*+?^$])"
_REPEATED = re.compile(rf"{_ATOM}(\{{\d{{1,2}}\}}|[*+?]|\{{\d{{1,2}},\d{{0,2}}\}})?")


def is_safe_pattern(value: Any) -> bool:
    r"""Whether a token pattern is a plain sequence with one repetition, such as r"(?u)\b\w\w+\b"."""
    if not isinstance(value, str) or len(value) > 200:
        return False
    rest, repeats = value.removeprefix("(?u)"), []
    while rest:
        found = _REPEATED.match(rest)
        if found is None:
            return False
        repeats.append(found[1] or "")
        rest = rest[found.end() :]
    # With more of them, a long word without spaces could take forever.
    n_open = sum(repeat in ("*", "+") or "," in repeat for repeat in repeats)
    return n_open <= 1 and repeats.count("?") <= 2


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(type(n) is int for n in value) and 1 <= value[0] <= value[1] <= 20


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_vocabulary(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else ()
    return _are_strings(value) or (
        isinstance(value, dict) and all(type(n) is int and n >= 0 for n in numbers)
    )


FLAG = params.one_of(False, True)
NONE = params.one_of(None)
SHARE = params.either(params.whole(1), params.number(0, 1))
LIMITS: Mapping[str, Constraint] = {
    "input": params.one_of("content"),
    "encoding": Constraint("a string", lambda value: isinstance(value, str)),
    "decode_error": params.one_of("strict", "ignore", "replace"),
    "strip_accents": params.one_of(None, "ascii", "unicode"),
    "lowercase": FLAG,
    "preprocessor": NONE,
    "tokenizer": NONE,
    "analyzer": params.one_of("word", "char", "char_wb"),
    "stop_words": params.either(params.one_of(None, "english"), Constraint("a list of words", _are_strings)),
    "token_pattern": params.either(
        NONE,
        Constraint(
            r"a sequence of characters, [classes] and \b, with at most one repetition by *, + or {m,n}",
            is_safe_pattern,
        ),
    ),
    "ngram_range": Constraint("two whole numbers from 1 to 20", _is_range),
    "max_df": SHARE,
    "min_df": SHARE,
    "max_features": params.either(NONE, params.whole(1)),
    "vocabulary": params.either(NONE, Constraint("terms with their numbers", _is_vocabulary)),
    "binary": FLAG,
    "dtype": params.one_of("float32", "float64", "int32", "int64"),
    "norm": params.one_of(None, "l1", "l2"),
    "use_idf": FLAG,
    "smooth_idf": FLAG,
    "sublinear_tf": FLAG,
    "alternate_sign": FLAG,
    "n_features": Constraint("a whole number", lambda value: type(value) is int and 1 <= value < 2**31),
}


def describe(vectorizer: Any) -> dict[str, Any]:
    """The class and the parameters of a vectorizer, as a manifest holds them; a ModelError if it cannot."""
    name = type(vectorizer).__name__
    if KINDS.get(name) is not type(vectorizer):
        raise ModelError(
            f"A model with a {name} cannot be saved; with {', '.join(KINDS)} it can. "
            "Save `model_` instead, and make its features yourself."
        )
    plain = {key: _plain(key, value) for key, value in vectorizer.get_params(deep=False).items()}
    try:
        _check(name, plain)
    except ValueError as error:
        raise ModelError(f"A model with this vectorizer cannot be saved: {error}") from None
    return {"class": name, "parameters": plain}


def _check(name: str, parameters: dict[str, Any]) -> None:
    unknown = sorted(set(parameters) - set(LIMITS))
    if unknown:
        raise ValueError(f"The parameters {unknown} of {name} are not known.")
    params.check(name, parameters, LIMITS)


def _plain(name: str, value: Any) -> Any:
    if name == "dtype":
        return np.dtype(value).name
    if callable(value):
        raise ModelError(
            f"The vectorizer's {name!r} is a function, and a model folder holds no code. Say it by "
            "`token_pattern`, or save `model_` and make its features yourself."
        )
    if name == "vocabulary" and isinstance(value, Mapping):
        return {str(term): int(column) for term, column in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (tuple, list, np.ndarray)):
        return np.asarray(value).tolist()
    return value.item() if isinstance(value, np.generic) else value


def restore(kept: Any) -> Any:
    """The vectorizer of a manifest, unfitted; a ValueError if it is not as `describe` writes it."""
    kind, parameters = KINDS.get(kept["class"]), dict(kept["parameters"])
    if kind is None:
        raise ModelError(f"A model has a {kept['class']}, which this version of exmlds does not know.")
    _check(kept["class"], parameters)
    parameters["dtype"] = np.dtype(parameters["dtype"]).type
    if "ngram_range" in parameters:
        parameters["ngram_range"] = tuple(parameters["ngram_range"])
    return kind(**parameters)


def fitted_state(vectorizer: Any) -> dict[str, Any]:
    """The class, the parameters and the idf of a fitted vectorizer; its terms are kept beside it."""
    described = describe(vectorizer)
    if "vocabulary" in described["parameters"]:
        described["parameters"]["vocabulary"] = None  # the terms have it
    has_idf = getattr(vectorizer, "use_idf", False)
    return {**described, "idf": getattr(vectorizer, "idf_", None) if has_idf else None}


def restore_fitted(kept: Any, terms: Any) -> Any:
    """The fitted vectorizer that `fitted_state` has described; terms : (d,) strings, or None if hashed."""
    vectorizer = restore(kept)
    if terms is not None:
        stored.strings(terms, "the terms", None)
        vectorizer.vocabulary = {term: column for column, term in enumerate(terms)}
        with np.errstate(divide="ignore"):  # of the idf, which is replaced
            vectorizer.fit([""])
    if kept["idf"] is not None:
        idf = stored.array(kept["idf"], "the idf", stored.FLOATS, None)
        stored.require(np.isfinite(idf).all(), "the idf is not finite")
        vectorizer.idf_ = idf
    return vectorizer
