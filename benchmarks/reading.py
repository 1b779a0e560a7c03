"""Compare the reader of XC text with scikit-learn's svmlight reader, on unpacked EURLex-4K and one thread.

EXMLDS_DATA=… python benchmarks/reading.py
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from exmlds.data import find, read_xc
from measure import destination, parser_of, peak_bytes, race, write_results


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--memory", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        memory(options.memory)
        return
    path = destination(parser, options, "reading")
    with tempfile.TemporaryDirectory() as folder:
        plain, bare = Path(folder) / "train.txt", Path(folder) / "bare.txt"
        with gzip.open(find("eurlex-4k", "train")) as packed:
            plain.write_bytes(packed.read())
        bare.write_bytes(plain.read_bytes().partition(b"\n")[2])  # scikit-learn's reader accepts no header

        def theirs() -> tuple:
            return load_svmlight_file(
                str(bare), multilabel=True, zero_based=True, n_features=5_000, dtype=np.float32
            )

        taken = race(5, ours=lambda: read_xc(plain), theirs=theirs)
        data, (X, labels) = read_xc(plain), theirs()
        same_labels = all(
            sorted(map(int, row)) == mine.tolist()
            for row, mine in zip(labels, np.split(data.Y.indices, data.Y.indptr[1:-1]))
        )
        child = subprocess.run(
            [sys.executable, __file__, "--memory", str(plain)], capture_output=True, text=True, check=True
        )
        size = plain.stat().st_size
        results = {
            "file": "eurlex-4k train.txt",
            "rows": data.X.shape[0],
            "features": data.X.shape[1],
            "labels": data.Y.shape[1],
            "megabytes": size / 1e6,
            "seconds": taken["ours"],
            "megabytes_per_second": size / 1e6 / taken["ours"],
            "scikit_learn_seconds": taken["theirs"],
            "times_as_fast": taken["theirs"] / taken["ours"],
            "different_features": int((data.X != X).nnz),
            "same_labels": bool(same_labels),
            **json.loads(child.stdout),
        }
    print(json.dumps(results, indent=1))
    write_results(path, results)


def memory(path: str) -> None:
    """Run in its own process: measure the peak memory relative to the size of the matrices."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as small:
        small.write("0 1:1\n")
        small.flush()
        read_xc(small.name)  # compile first
    before = peak_bytes()
    data = read_xc(path)
    matrices = sum(getattr(m, part).nbytes for m in data[:2] for part in ("data", "indices", "indptr"))
    print(json.dumps({"matrix_bytes": matrices, "peak_over_matrices": (peak_bytes() - before) / matrices}))


if __name__ == "__main__":
    main()
