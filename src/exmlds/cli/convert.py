"""The command `exmlds convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .arguments import AsJson, complete_data


def convert(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="A file in any format, or the name of a data set.",
            autocompletion=complete_data,
        ),
    ],
    target: Annotated[
        Path,
        Argument(
            metavar="TARGET",
            help="X.name.npz writes a pair of .npz files, any other name XC text; .gz is gzipped.",
        ),
    ],
    labels: Annotated[Path | None, Option(help="The file of labels, if SOURCE holds features only.")] = None,
    split: Annotated[
        str | None, Option(help="The split of a named data set: train or test.  [default: train]")
    ] = None,
    one_based: Annotated[bool, Option("--one-based", help="The ids in SOURCE start from 1.")] = False,
    mapped: Annotated[
        bool,
        Option("--mapped", help="Write .npz files that are memory-mapped, for data larger than memory."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Convert a data set to XC text or .npz pairs.

    SOURCE is XC text, its split form, svmlight multi-label or .npz pairs, detected from the content.

    With --mapped, text is converted block by block, so that SOURCE may be larger than memory, and commands
    use the features where they lie in the file: `exmlds train X.name.npz` does not read them into memory. The
    files are not compressed; scipy.sparse.load_npz reads them too.
    """
    from .. import data
    from ..data.npz import npz_pair
    from ..errors import DataError
    from ..runtime import progress
    from ..storage.files import replacing
    from .output import print_json, say
    from .sources import check_output, locate, refuse_texts

    if split not in (None, "train", "test"):
        raise DataError(f"--split must be train or test. Got {split!r} instead.")
    path = locate(source, split or "train")
    if split and path == Path(source):
        raise DataError(f"{source} is a file; --split applies to data sets given by name.")
    if mapped and target.suffix != ".npz":
        raise DataError(f"--mapped writes .npz files; name X.name.npz as the target. Got {target}.")
    written: tuple[Path, ...] = npz_pair(target) if target.suffix == ".npz" else (target,)
    for output in written:
        check_output(output, path, labels)
    refuse_texts(path)
    with progress.shown():
        if mapped:
            label_names, feature_names = data.convert_to_mapped(path, target, labels, one_based=one_based)
            dataset = data.read_xc(*written)
        else:
            dataset = data.read_xc(path, labels, one_based=one_based)
            label_names, feature_names = dataset.label_names, dataset.feature_names
            if target.suffix == ".npz":
                data.write_npz(target, dataset)
            else:
                data.write_xc(target, dataset)
        names = {"label_names.txt": label_names, "feature_names.txt": feature_names}
        for name, lines in names.items():  # written beside the data, where the readers look for them
            if lines and not target.with_name(name).exists():
                with replacing(target.with_name(name)) as file:
                    file.write("".join(f"{line}\n" for line in lines).encode())
                written = (*written, target.with_name(name))
    if as_json:
        sizes = {"rows": dataset.X.shape[0], "features": dataset.X.shape[1], "labels": dataset.Y.shape[1]}
        print_json({**sizes, "files": list(map(str, written))})
    else:
        say(f"{dataset!r}")
        say(f"Wrote {', '.join(map(str, written))}.")
