"""What `parse_rows` can find wrong with a token."""

NONE = 0
NOT_A_NUMBER = 1
NOT_FINITE = 2
NEGATIVE_ID = 3
FEATURE_OUT_OF_RANGE = 4
LABEL_OUT_OF_RANGE = 5
EMPTY_ID = 6
