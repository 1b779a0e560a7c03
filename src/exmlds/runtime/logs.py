"""The logger "exmlds": phases of a fit at INFO with rows and seconds, choices at DEBUG; silent by default."""

from __future__ import annotations

import logging

logger = logging.getLogger("exmlds")
logger.addHandler(logging.NullHandler())
