"""The command `exmlds tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from .settings import DEFAULT_METHOD


def tune(
    data: Annotated[str, Argument(help="A file, or the name of a data set under EXMLDS_DATA.")],
    output: Annotated[Path, Option("-o", "--output", help="The config file to write, for --config.")],
    time_budget: Annotated[float, Option(min=1, help="The approximate time limit in seconds.")] = 600,
    labels: Annotated[Path | None, Option(help="The file of labels, if DATA holds features only.")] = None,
    method: Annotated[str | None, Option(help=f"The method.  [default: {DEFAULT_METHOD}]")] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="A parameter to keep fixed, as key=value; may be repeated.")
    ] = None,
    config: Annotated[Path | None, Option(help="A TOML config file to start from.")] = None,
    seed: Annotated[int, Option(min=0, help="The random seed; it chooses the held-out rows.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search for better parameters on held-out rows, and write them to a config file."""
    from time import perf_counter

    from sklearn.base import clone

    from .. import metrics, selection
    from ..errors import DataError
    from ..runtime import progress
    from ..storage.files import replacing
    from .output import percent, print_json, print_table
    from .settings import as_toml, make_model, method_name
    from .sources import read

    model = make_model(method, config, [*(set_ or [])])
    fixed = {assignment.partition("=")[0].strip() for assignment in set_ or []}
    space = {name: values for name, values in model._space.items() if name not in fixed}
    if not space:
        raise DataError(f"{method_name(type(model).__name__)} has no parameter left to tune.")

    def write(chosen: Any) -> None:
        with replacing(output) as file:
            file.write(f"{as_toml(chosen)}\n".encode())

    with progress.shown():
        dataset = read(data, "train", labels)
        write(model)  # an output that cannot be written fails now, and not after the search
        model.set_params(random_state=seed)
        train, held_out = selection.random_split(dataset.X.shape[0], 0.2, random_state=seed)
        truth = dataset.Y[held_out]

        def value_of(parameters: dict[str, Any]) -> float:
            tried = clone(model).set_params(**parameters).fit(dataset.X[train], dataset.Y[train])
            ranking = metrics.Ranking(truth, tried.predict_topk(dataset.X[held_out], 5), 5)
            return sum(ranking.value(f"P@{k}") for k in (1, 3, 5)) / 3

        trials = []
        started = perf_counter()
        with progress.stage("tuning", round(time_budget), unit="s") as advance:
            start = {name: model.get_params()[name] for name in space}
            for trial in selection.tune(value_of, space, time_budget, start=start):
                trials.append(trial)
                # The best configuration is written at once, so that Ctrl-C loses nothing.
                if trial.value >= max(t.value for t in trials):
                    write(clone(model).set_params(**trial.parameters, random_state=None))
                advance(round(perf_counter() - started))
                started = perf_counter()
    best = max(trials, key=lambda trial: trial.value)
    if as_json:
        print_json({"config": str(output), "best": best._asdict(), "trials": [t._asdict() for t in trials]})
        return
    rows = [
        (
            ", ".join(f"{k}={v}" for k, v in t.parameters.items()) or "starting values",
            percent(t.value),
            f"{t.seconds:.1f}",
        )
        for t in trials
    ]
    print_table(("parameters", "mean of P@1, 3, 5 on held-out rows", "seconds"), rows)
    print(f"{output}: the best of {len(trials)}. Next: exmlds train {data} -o model --config {output}")
