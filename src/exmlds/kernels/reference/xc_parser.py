"""Parser of the text format of the Extreme Classification (XC) repository."""

from __future__ import annotations

import re

import numpy as np

from ..parse_errors import (
    EMPTY_ID,
    FEATURE_OUT_OF_RANGE,
    FLOAT32_OVERFLOW,
    LABEL_OUT_OF_RANGE,
    NEGATIVE_ID,
    NONE,
    NOT_A_NUMBER,
    NOT_FINITE,
)

Array = np.ndarray

_ID = re.compile(rb"[0-9]+\Z")
_NEGATIVE = re.compile(rb"-[0-9]")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(rb"[+-]?[nNiI]")
_TOKEN = re.compile(rb"[^ \t\r\n#]+")


class _Bad(Exception):
    def __init__(self, problem: int, start: int, end: int) -> None:
        self.where = (problem, start, end)


def parse_rows(
    text: Array,
    labelled: bool,
    base: int,
    n_features: int,
    n_labels: int,
    features: Array,
    values: Array,
    labels: Array,
    features_of_row: Array,
    labels_of_row: Array,
    hard_numbers: Array,
) -> tuple[int, int, int, int, int, bool, int, int, int]:
    """Parse whole lines of `l1,l2 f:v f:v …`, or of `f:v f:v …` where not `labelled`.

    Return the counts of rows, values, labels and hard numbers; the number of empty lines at the end; whether
    any row has unsorted or repeated ids; and the code of the first error with the start and end of its token.

    text : (n,) uint8, whole lines
    base : the smallest valid id in the file, 0 or 1
    n_features, n_labels : the first id that is out of range, after subtracting base
    features, values, labels : (≥ n/2 + 1,) int32, float32, int32, filled in order
    features_of_row, labels_of_row : (≥ lines,) int64, filled
    hard_numbers : (≥ n/6 + 1, 3) int64, filled with (index into values, start, end) of the `f:v` tokens whose
        value the kernel can't round correctly; the caller parses them
    """
    n_rows = n_values = n_marks = n_blank_tail = 0
    disorder = False
    position = 0
    try:
        for line in _lines(text.tobytes()):
            start, position = position, position + len(line)
            if line.startswith(b"#"):
                continue
            n_blank_tail = n_blank_tail + 1 if line in (b"\n", b"\r\n") else 0
            tokens = [(start + t.start(), t.group()) for t in _TOKEN.finditer(line.partition(b"#")[0])]
            row_labels: list[int] = []
            if labelled and tokens and tokens[0][0] == start and b":" not in tokens[0][1]:
                row_labels = _labels(*tokens.pop(0), base, n_labels)
            row_features = []
            for where, token in tokens:
                feature, value = _feature(where, token, base, n_features)
                features[n_values], values[n_values] = feature, value
                row_features.append(feature)
                n_values += 1
            labels[n_marks : n_marks + len(row_labels)] = row_labels
            n_marks += len(row_labels)
            features_of_row[n_rows], labels_of_row[n_rows] = len(row_features), len(row_labels)
            n_rows += 1
            disorder |= any(ids != sorted(set(ids)) for ids in (row_features, row_labels))
    except _Bad as bad:
        return n_rows, n_values, n_marks, 0, n_blank_tail, disorder, *bad.where
    return n_rows, n_values, n_marks, 0, n_blank_tail, disorder, NONE, 0, 0


def _lines(raw: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in raw.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _id(token: bytes, start: int, end: int, base: int, limit: int, too_large: int) -> int:
    if _NEGATIVE.match(token):
        raise _Bad(NEGATIVE_ID, start, end)
    digits = re.match(rb"[0-9]+", token)
    if digits:
        value = int(digits.group()) - base
        if value < 0:
            raise _Bad(NEGATIVE_ID, start, end)
        if value >= limit:
            raise _Bad(too_large, start, end)
    if not _ID.match(token):
        raise _Bad(NOT_A_NUMBER, start, end)
    return value


def _labels(start: int, token: bytes, base: int, n_labels: int) -> list[int]:
    ids = []
    at = start
    for part in token.split(b","):
        if not part:
            raise _Bad(EMPTY_ID, at, start + len(token))
        ids.append(_id(part, at, at + len(part), base, n_labels, LABEL_OUT_OF_RANGE))
        at += len(part) + 1
    return ids


def _feature(start: int, token: bytes, base: int, n_features: int) -> tuple[int, np.float32]:
    end = start + len(token)
    name, colon, number = token.partition(b":")
    feature = _id(name, start, end, base, n_features, FEATURE_OUT_OF_RANGE)
    if not colon:
        return feature, np.float32(1)
    if not _NUMBER.match(number):
        raise _Bad(NOT_FINITE if _NOT_FINITE.match(number) else NOT_A_NUMBER, start, end)
    value = float(number)
    if abs(value) >= FLOAT32_OVERFLOW:
        raise _Bad(NOT_FINITE, start, end)
    return feature, np.float32(value)
