"""Write `saved-VERSION.zip`: a small model of each class, so that the tests see that old models still load.

    python tests/storage/make_saved.py VERSION

The file of a released version is never written again; a version with another format adds its own.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from exmlds import (
    DXML,
    LEML,
    LEMLIMC,
    SLEEC,
    WSABIE,
    AnnexML,
    DiSMEC,
    ExMLDS,
    ExMLDS1,
    ExMLDS2,
    ExMLDS3,
    ExMLDS4,
    FastXML,
    FeatureNeighbors,
    MostFrequent,
    OneVsAll,
    Partitioned,
    PDSparse,
    PfastreXML,
    PPDSparse,
    RidgeRegression,
    TextClassifier,
    XMCEstimator,
)
from exmlds.data import make_library

HERE = Path(__file__).parent
SMALL: dict[str, Any] = {"n_components": 5, "features": "l2", "temperature": 0.1, "random_state": 0}
METHODS: dict[str, XMCEstimator] = {
    "ExMLDS": ExMLDS(cost=1.0, shortlist=5, random_state=0),
    "ExMLDS1": ExMLDS1(**SMALL, l2=1.0, n_parts=2),
    "ExMLDS2": ExMLDS2(**SMALL, l2=1.0, n_epochs=2),
    "ExMLDS3": ExMLDS3(**SMALL, l2=1.0, mu=(1, 1, 10), complete_labels=0.5),
    "ExMLDS4": ExMLDS4(**SMALL, n_epochs=2, n_learners=2, storage="int8"),
    "FeatureNeighbors": FeatureNeighbors(),
    "MostFrequent": MostFrequent(),
    "SLEEC": SLEEC(**SMALL, l2=1.0),
    "AnnexML": AnnexML(n_components=5, n_epochs=1, n_learners=2, random_state=0),
    "LEML": LEML(n_components=5, random_state=0),
    "LEMLIMC": LEMLIMC(n_components=5, random_state=0),
    "OneVsAll": OneVsAll(random_state=0),
    "DiSMEC": DiSMEC(random_state=0),
    "RidgeRegression": RidgeRegression(l2=1.0, random_state=0),
    "FastXML": FastXML(n_trees=2, random_state=0),
    "PfastreXML": PfastreXML(n_trees=2, random_state=0),
    "PPDSparse": PPDSparse(random_state=0),
    "PDSparse": PDSparse(n_epochs=3, random_state=0),
    "WSABIE": WSABIE(n_components=5, random_state=0),
    "Partitioned": Partitioned(estimator=FeatureNeighbors(), n_parts=2, random_state=0),
    "DXML": DXML(n_components=5, n_hidden=10, n_walks=2, n_epochs=3, random_state=0),
}
TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"]
LABELS = [["sport"], ["baking"], ["sport"], ["baking"]]


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    data = make_library(80, random_state=0)
    expected = {}
    for name, method in METHODS.items():
        model = method.fit(data.X[:60], data.Y[:60], label_names=data.label_names)
        model.save(folder / name)
        expected[name] = model.predict_labels(data.X[60:], k=1)
    texts = TextClassifier(model=FeatureNeighbors(), keep_rows=True).fit(TEXTS, LABELS)
    texts.save(folder / "TextClassifier")
    expected["TextClassifier"] = texts.predict_labels(TEXTS, k=1)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    shutil.make_archive(str(HERE / f"saved-{sys.argv[1]}"), "zip", folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
