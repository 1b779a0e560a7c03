"""Imports for the commands that predict, which answer sooner without what prediction does not use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# scikit-learn imports these at its start; docs/performance.md has the seconds that they take.
UNUSED = ("pandas", "scipy.stats")


def import_scikit_learn() -> None:
    """Import what models take from scikit-learn, without the large packages that prediction does not use."""
    with deferred(*UNUSED):
        import_module("sklearn.feature_extraction.text")


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Defer the import of modules: what imports them in this block gets them when it first uses them.

    Modules that are imported already, or not installed, are left as they are. After the block, any import
    finds the modules themselves.
    """
    new = [name for name in names if name not in sys.modules and find_spec(name) is not None]
    modules = {name: _DeferredModule(name) for name in new}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for module in modules.values():
            _give_way(module)


class _DeferredModule(ModuleType):
    """Stands for a module, and imports it when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self)
        return getattr(import_module(self.__name__), name)


def _give_way(module: _DeferredModule) -> None:
    """Let the next import of this name find the module itself."""
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
