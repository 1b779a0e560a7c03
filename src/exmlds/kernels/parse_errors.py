"""Codes of the errors that `parse_rows` finds in a token.

The numbers are compiled into cached kernels: add new ones, but never change an existing one.
"""

NONE = 0
NOT_A_NUMBER = 1
NOT_FINITE = 2
NEGATIVE_ID = 3
FEATURE_OUT_OF_RANGE = 4
LABEL_OUT_OF_RANGE = 5
EMPTY_ID = 6

# Halfway between the largest float32 and the next power of two: larger values round to infinity.
FLOAT32_OVERFLOW = 2.0**128 - 2.0**103
