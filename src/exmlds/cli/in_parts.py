"""Training and predicting in parts: shards, and the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .texts import TextOptions


def is_pattern(data: str) -> bool:
    """Whether DATA is a pattern of several files, and not a file whose name looks like one."""
    return has_magic(data) and not Path(data).exists()


@contextmanager
def on_workers(workers: int | None, address: str | None) -> Iterator[None]:
    """Run tasks on a cluster, if one is asked for."""
    from ..errors import DataError
    from ..runtime import cluster

    if workers is not None and address is not None:
        raise DataError("--workers starts workers here, and --cluster uses others; leave one of them out.")
    if workers is None and address is None:
        yield
        return
    with cluster.connected(address, workers or 0):
        yield


def find_data(data: str, split: str) -> list[Path]:
    """The shards that DATA names."""
    from ..data import find_shards
    from .sources import locate

    return find_shards(data if is_pattern(data) else locate(data, split))


def train_in_parts(
    model: Any,
    data: str,
    output: Path,
    options: TextOptions,
    terms: Mapping[str, Any],
    parts: int | None,
    workers: int | None,
    address: str | None,
) -> dict[str, Any]:
    """Fit parts to the shards that DATA names, and save them as one model; return the summary."""
    from .. import Partitioned, TextClassifier
    from ..data import open_shards
    from ..data.shards import TextShard
    from ..errors import DataError
    from ..runtime import progress
    from ..storage import model_folder
    from .settings import method_name
    from .sources import check_output_folder
    from .texts import OPTIONS, TextOptions

    model_folder.check_target(output)
    check_output_folder(output)
    name = method_name(type(model).__name__)
    if not isinstance(model, Partitioned):
        model = Partitioned(
            estimator=model,
            random_state=model.random_state,
            threshold=model.threshold,
            max_labels=model.max_labels,
            max_memory=model.max_memory,
            n_jobs=model.n_jobs,
            verbose=model.verbose,
        )
    if parts is not None:
        model.set_params(n_parts=parts)
    shards, label_names = open_shards(find_data(data, "train"), **options._asdict())
    started = perf_counter()
    with on_workers(workers, address), progress.shown():
        if isinstance(shards[0], TextShard):
            model = TextClassifier(model, **terms)
            model.fit_shards(shards, output)
        else:
            if options != TextOptions():
                raise DataError(f"{data} holds numbers; the options for texts do not apply.")
            for term in terms:
                raise DataError(f"{data} holds numbers; {OPTIONS[term]} is for texts.")
            model.fit_shards(shards, output, label_names=label_names)
    return {
        "model": str(output),
        "method": name,
        "rows": int(model.n_samples_fit_),
        "features": int(model.n_features_in_),
        "labels": model.n_labels_,
        "parts": len(model._method.parts_),
        "shards": len(shards),
        "read_seconds": 0.0,
        "fit_seconds": round(perf_counter() - started, 3),
        "scores": model._score_meaning,
        "held_out": model.held_out_metrics_,
        "bytes": model_folder.size(output),
    }


def predict_shards(
    predict: Callable[..., None],
    model: Path,
    data: str | None,
    output: Path | None,
    options: Mapping[str, Any],
    workers: int | None,
    address: str | None,
) -> None:
    """Predict the rows of each shard that DATA names, and write a file for each to the output folder.

    predict : the command, for one shard;  options : its other arguments
    """
    from ..errors import DataError
    from ..runtime import cluster, progress
    from .prediction_writer import choose_format

    if data is None or output is None or output.is_file():
        raise DataError("Several files are predicted into a folder: name one by --output, and their pattern.")
    kind = choose_format(options["output_format"], options["as_json"], None)
    ending = "txt" if kind == "text" else kind
    output.mkdir(parents=True, exist_ok=True)
    targets: dict[Path, Path] = {}
    for shard in find_data(data, "test"):
        stem = shard.name.removesuffix(".gz").rpartition(".")[0] or shard.name
        target = output / f"{stem}.{ending}"
        if target in targets.values():
            raise DataError(f"{shard}: another file would also be predicted to {target}; rename one of them.")
        targets[shard] = target
    calls = [(predict, model, shard, target, dict(options)) for shard, target in targets.items()]
    with on_workers(workers, address), progress.shown():
        cluster.run(_predict_shard, calls, "predicting")


def _predict_shard(
    predict: Callable[..., None], model: Path, shard: Path, target: Path, options: dict[str, Any]
) -> None:
    predict(model=model, data=str(shard), output=target, **options)
