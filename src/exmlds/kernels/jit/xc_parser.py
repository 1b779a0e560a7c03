"""Parser of the text format of the Extreme Classification (XC) repository."""

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
from .compiler import kernel

# A mantissa below 2⁵³ multiplied or divided by 10^e, e ≤ 22, is rounded once, hence to the nearest double.
EXACT_POWERS = 10.0 ** np.arange(23)


@kernel
def is_end(byte):
    return byte == 32 or byte == 9 or byte == 10 or byte == 13 or byte == 35  # blank, tab, \n, \r, #


@kernel
def parse_id(text, start, base, limit, too_large):
    """Return (id, position after it, error code)."""
    n = len(text)
    i = start
    value = 0
    if i < n and text[i] == 45 and i + 1 < n and 48 <= text[i + 1] <= 57:
        return 0, i, NEGATIVE_ID
    while i < n and 48 <= text[i] <= 57:
        if value < 1 << 40:
            value = value * 10 + (text[i] - 48)
        i += 1
    if i == start:
        return 0, i, NOT_A_NUMBER
    value -= base
    if value < 0:
        return 0, i, NEGATIVE_ID
    if value >= limit:
        return 0, i, too_large
    return value, i, NONE


@kernel
def parse_value(text, start):
    """Return (value, position after it, error code, hard); the caller parses hard numbers with float()."""
    n = len(text)
    i = start
    negative = False
    if i < n and (text[i] == 45 or text[i] == 43):
        negative = text[i] == 45
        i += 1
    mantissa = np.uint64(0)
    digits = 0  # significant digits
    seen = False
    exponent = 0
    while i < n and 48 <= text[i] <= 57:
        seen = True
        if digits > 0 or text[i] != 48:
            digits += 1
        if digits <= 19:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
        i += 1
    if i < n and text[i] == 46:
        i += 1
        while i < n and 48 <= text[i] <= 57:
            seen = True
            if digits > 0 or text[i] != 48:
                digits += 1
            if digits <= 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
                exponent -= 1
            i += 1
    if not seen:
        j = start
        if j < n and (text[j] == 45 or text[j] == 43):
            j += 1
        if j < n and (text[j] | 32 == 110 or text[j] | 32 == 105):  # n(an), i(nf)
            return 0.0, i, NOT_FINITE, False
        return 0.0, i, NOT_A_NUMBER, False
    hard = digits > 19
    if i < n and (text[i] == 101 or text[i] == 69):
        i += 1
        sign = 1
        if i < n and (text[i] == 45 or text[i] == 43):
            sign = -1 if text[i] == 45 else 1
            i += 1
        power_start = i
        power = 0
        while i < n and 48 <= text[i] <= 57:
            if power < 100_000:
                power = power * 10 + (text[i] - 48)
            i += 1
        if i == power_start:
            return 0.0, i, NOT_A_NUMBER, False
        exponent += sign * power
    if i < n and not is_end(text[i]):
        return 0.0, i, NOT_A_NUMBER, False
    if mantissa >= np.uint64(1) << np.uint64(53) or exponent > 22 or exponent < -22:
        hard = True
    if hard:
        return 0.0, i, NONE, True
    value = float(mantissa)
    if exponent > 0:
        value *= EXACT_POWERS[exponent]
    elif exponent < 0:
        value /= EXACT_POWERS[-exponent]
    if value >= FLOAT32_OVERFLOW:
        return 0.0, i, NOT_FINITE, False
    return (-value if negative else value), i, NONE, False


@kernel
def token_end(text, start):
    i = start
    while i < len(text) and not is_end(text[i]):
        i += 1
    return i


@kernel
def parse_rows(
    text,
    labelled,
    base,
    n_features,
    n_labels,
    features,
    values,
    labels,
    features_of_row,
    labels_of_row,
    hard_numbers,
):
    """See the twin in reference/xc_parser.py."""
    n = len(text)
    i = 0
    n_rows = 0
    n_values = 0
    n_marks = 0
    n_hard = 0
    n_blank_tail = 0
    disorder = False
    problem = NONE
    while i < n:
        if text[i] == 35:  # A comment line is not a row.
            while i < n and text[i] != 10:
                i += 1
            i += 1
            continue
        if text[i] == 10 or (text[i] == 13 and i + 1 < n and text[i + 1] == 10):
            n_blank_tail += 1
        else:
            n_blank_tail = 0
        row_values = n_values
        row_marks = n_marks
        # A first token without a colon is the list of labels.
        if labelled and not is_end(text[i]):
            end = token_end(text, i)
            colon = i
            while colon < end and text[colon] != 58:
                colon += 1
            if colon == end:
                last = -1
                while True:
                    if i == end or text[i] == 44:
                        return n_rows, n_values, n_marks, n_hard, n_blank_tail, disorder, EMPTY_ID, i, end
                    start = i
                    label, i, problem = parse_id(text, i, base, n_labels, LABEL_OUT_OF_RANGE)
                    if problem == NONE and i < end and text[i] != 44:
                        problem = NOT_A_NUMBER
                    if problem != NONE:
                        while i < end and text[i] != 44:
                            i += 1
                        return n_rows, n_values, n_marks, n_hard, n_blank_tail, disorder, problem, start, i
                    labels[n_marks] = label
                    n_marks += 1
                    if label <= last:
                        disorder = True
                    last = label
                    if i == end:
                        break
                    i += 1
        last = -1
        while True:
            while i < n and (text[i] == 32 or text[i] == 9 or text[i] == 13):
                i += 1
            if i < n and text[i] == 35:
                while i < n and text[i] != 10:
                    i += 1
            if i >= n or text[i] == 10:
                break
            start = i
            feature, i, problem = parse_id(text, i, base, n_features, FEATURE_OUT_OF_RANGE)
            value = 1.0
            hard = False
            if problem == NONE:
                if i < n and text[i] == 58:
                    value, i, problem, hard = parse_value(text, i + 1)
                elif i < n and not is_end(text[i]):
                    problem = NOT_A_NUMBER
            if problem != NONE:
                end = token_end(text, start)
                return n_rows, n_values, n_marks, n_hard, n_blank_tail, disorder, problem, start, end
            if hard:
                hard_numbers[n_hard, 0] = n_values
                hard_numbers[n_hard, 1] = start
                hard_numbers[n_hard, 2] = i
                n_hard += 1
            features[n_values] = feature
            values[n_values] = value
            n_values += 1
            if feature <= last:
                disorder = True
            last = feature
        features_of_row[n_rows] = n_values - row_values
        labels_of_row[n_rows] = n_marks - row_marks
        n_rows += 1
        i += 1
    return n_rows, n_values, n_marks, n_hard, n_blank_tail, disorder, NONE, 0, 0
