"""The command `exmlds info`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from .arguments import AsJson, complete_method


def info(
    method: Annotated[
        str | None,
        Argument(
            metavar="METHOD",
            autocompletion=complete_method,
            help="Print this method's parameters as a config file; exmlds1.paper are those of the paper.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show versions, methods and data sets, or a method's parameters."""
    import os
    import platform
    from importlib.metadata import version

    from .. import __version__, data
    from ..runtime.parallel import n_threads
    from .output import print_json, print_table, say
    from .settings import as_toml, find_method, methods

    if method is not None:
        found = find_method(method)
        if as_json:
            print_json(found().get_params())
        else:
            print(as_toml(found()))
        return
    here = data.available()
    facts = {
        "exmlds": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        "cores": n_threads(None),
        **{name: os.environ.get(name, "not set") for name in ("EXMLDS_DATA", "EXMLDS_KERNELS")},
    }
    if as_json:
        print_json({**facts, "methods": sorted(methods()), "data": here})
        return
    print_table(("property", "value"), list(facts.items()))
    summaries = [
        (name, (found.__doc__ or "").strip().partition("\n")[0]) for name, found in methods().items()
    ]
    print_table(("method", "what it does"), sorted(summaries))
    rows = [
        (name, i.n_train, i.n_test, i.n_features, i.n_labels, "yes" if (i.folder or name) in here else "no")
        for name, i in data.DATASETS.items()
    ]
    print_table(("data set", "train", "test", "features", "labels", "available"), rows)
    others = sorted(set(here) - {i.folder or name for name, i in data.DATASETS.items()})
    if others:
        say(f"Also under EXMLDS_DATA: {', '.join(others)}")
