"""What `parse_rows` can find wrong with a token.

These numbers are compiled into cached kernels: add new ones, do not change those that are there.
"""

NONE = 0
NOT_A_NUMBER = 1
NOT_FINITE = 2
NEGATIVE_ID = 3
FEATURE_OUT_OF_RANGE = 4
LABEL_OUT_OF_RANGE = 5
EMPTY_ID = 6

# Halfway from the largest float32 to the next power of two: from here on, rounding gives infinity.
FLOAT32_OVERFLOW = 2.0**128 - 2.0**103
