"""Extreme multi-label learning: find the few right labels among up to millions.

The public names are imported when they are first used, so `import exmlds` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import data, metrics, selection
    from .base import XMCEstimator, XMCPredictor, load
    from .errors import DataError, DataWarning, ExmldsError, ModelError
    from .models.annexml import AnnexML
    from .models.baselines import FeatureNeighbors, MostFrequent
    from .models.dxml import DXML
    from .models.exmlds import ExMLDS
    from .models.exmlds1 import ExMLDS1
    from .models.exmlds2 import ExMLDS2
    from .models.exmlds3 import ExMLDS3
    from .models.exmlds4 import ExMLDS4
    from .models.fastxml import FastXML, PfastreXML
    from .models.leml import LEML, LEMLIMC
    from .models.one_vs_all import DiSMEC, OneVsAll
    from .models.partitioned import Partitioned
    from .models.pd_sparse import PDSparse, PPDSparse
    from .models.ridge import RidgeRegression
    from .models.sleec import SLEEC
    from .models.text import TextClassifier
    from .models.wsabie import WSABIE
    from .validation.targets import LabelMatrix

__version__ = "0.1.0"

_HOME = {
    "AnnexML": "models.annexml",
    "DXML": "models.dxml",
    "DataError": "errors",
    "DataWarning": "errors",
    "DiSMEC": "models.one_vs_all",
    "ExMLDS": "models.exmlds",
    "ExMLDS1": "models.exmlds1",
    "ExMLDS2": "models.exmlds2",
    "ExMLDS3": "models.exmlds3",
    "ExMLDS4": "models.exmlds4",
    "ExmldsError": "errors",
    "FastXML": "models.fastxml",
    "FeatureNeighbors": "models.baselines",
    "LEML": "models.leml",
    "LEMLIMC": "models.leml",
    "LabelMatrix": "validation.targets",
    "ModelError": "errors",
    "MostFrequent": "models.baselines",
    "OneVsAll": "models.one_vs_all",
    "PDSparse": "models.pd_sparse",
    "PPDSparse": "models.pd_sparse",
    "Partitioned": "models.partitioned",
    "PfastreXML": "models.fastxml",
    "RidgeRegression": "models.ridge",
    "SLEEC": "models.sleec",
    "TextClassifier": "models.text",
    "WSABIE": "models.wsabie",
    "XMCEstimator": "base",
    "XMCPredictor": "base",
    "load": "base",
}
_MODULES = ("data", "metrics", "selection")

__all__ = [
    "DXML",
    "LEML",
    "LEMLIMC",
    "SLEEC",
    "WSABIE",
    "AnnexML",
    "DataError",
    "DataWarning",
    "DiSMEC",
    "ExMLDS",
    "ExMLDS1",
    "ExMLDS2",
    "ExMLDS3",
    "ExMLDS4",
    "ExmldsError",
    "FastXML",
    "FeatureNeighbors",
    "LabelMatrix",
    "ModelError",
    "MostFrequent",
    "OneVsAll",
    "PDSparse",
    "PPDSparse",
    "Partitioned",
    "PfastreXML",
    "RidgeRegression",
    "TextClassifier",
    "XMCEstimator",
    "XMCPredictor",
    "data",
    "load",
    "metrics",
    "selection",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
