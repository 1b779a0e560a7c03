"""Data sets by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from exmlds import DataError
from exmlds.data import DATASETS, Dataset, available, find, load, propensity_parameters, write_npz, write_xc


def test_the_standard_sets_are_known() -> None:
    assert set(DATASETS) == {
        "eurlex-4k",
        "wiki10-31k",
        "amazoncat-13k",
        "delicious-200k",
        "wikilshtc-325k",
        "amazon-670k",
        "wikipedia-500k",
        "bibtex",
        "delicious",
        "mediamill",
        "rcv1",
    }
    assert DATASETS["bibtex"].paper["ExMLDS1"] == (63.38, 38.00, 27.64)
    assert propensity_parameters("amazon-670k") == (0.6, 2.6)
    assert propensity_parameters("wikipedia-500k") == (0.5, 0.4)
    assert propensity_parameters("my-own") == (0.55, 1.5)


def test_load_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Dataset) -> None:
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    for name in ("bibtex", "mine"):
        (tmp_path / name).mkdir()
        write_xc(tmp_path / name / "train.txt.gz", library)
        write_npz(tmp_path / name / "X.tst.npz", library.rows(slice(0, 9)))
        train, test = load(name)
        assert (train.X.shape[0], test.X.shape[0]) == (400, 9)
    assert available() == ["bibtex", "mine"]


def test_errors_name_the_folder_to_put_them_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXMLDS_DATA", raising=False)
    with pytest.raises(DataError, match=r"EXMLDS_DATA is not set.*put train.txt.gz and test.txt.gz into"):
        load("eurlex-4k")
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"'rcv1' is not under .*rcv1subset1"):
        load("rcv1")
    with pytest.raises(DataError, match=r"'nothing' is unknown.*Known data sets: .*eurlex-4k"):
        load("nothing")


@pytest.mark.data
def test_sizes_are_those_of_the_files(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setenv("EXMLDS_DATA", str(real_data))
    for name, info in DATASETS.items():
        if (info.folder or name) in available():
            for split, n in (("train", info.n_train), ("test", info.n_test)):
                with gzip.open(find(name, split)) as file:
                    assert file.readline().split() == [b"%d" % i for i in (n, info.n_features, info.n_labels)]
