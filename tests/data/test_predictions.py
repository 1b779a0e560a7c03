"""Files of predictions."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from exmlds import DataError
from exmlds.data import read_predictions, write_predictions


@pytest.mark.parametrize(
    "text",
    [
        "4:0.9 2:0.5\n\n1:0.25 3:0.25\n",
        "3 5\n4:0.9 2:0.5\n\n1:0.25 3:0.25\n",
        "2:0.5 4:0.9\n\n1:0.25 3:0.25\n",
        "4 2\n\n1 3\n",
        "4\t2\r\n\r\n1 3",
    ],
    ids=["best first", "header", "by label", "bare", "crlf"],
)
def test_forms(tmp_path: Path, text: str) -> None:
    path = tmp_path / "predictions.txt"
    path.write_bytes(text.encode())
    ids, scores = read_predictions(path, n_labels=5)
    assert ids.tolist() == [[4, 2], [-1, -1], [1, 3]]
    assert scores[1].tolist() == [0, 0]


def test_equal_scores_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "predictions.txt"
    path.write_text("3:0.5 1:0.5 2:0.75\n")
    assert read_predictions(path)[0].tolist() == [[2, 3, 1]]
    assert read_predictions(path, k=2)[0].tolist() == [[2, 3]]
    assert read_predictions(path, k=5)[0].tolist() == [[2, 3, 1, -1, -1]]


def test_npz_scores(tmp_path: Path) -> None:
    save_npz(tmp_path / "p.npz", csr_matrix(np.array([[0.1, 0, 0.7], [0, 0, 0]])))
    ids, scores = read_predictions(tmp_path / "p.npz")
    assert ids.tolist() == [[2, 0], [-1, -1]]
    np.testing.assert_allclose(scores[0], [0.7, 0.1])


def test_unknown_labels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "predictions.txt"
    path.write_text("1:0.5\n9:0.5\n")
    with pytest.raises(DataError, match=r"predictions.txt:2: label 9 is out of range; there are 5 labels"):
        read_predictions(path, n_labels=5)


def test_repeated_labels_and_padding_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "predictions.txt"
    path.write_text("1:0.5\n4:0.5 3:0.4 4:0.3\n")
    with pytest.raises(DataError, match=r"predictions.txt: row 2, counted from 1, predicts label 4 twice"):
        read_predictions(path)
    assert read_predictions(path, k=2)[0].tolist() == [[1, -1], [4, 3]]
    path.write_text("1:0.5 -1:0.0\n")
    with pytest.raises(DataError, match=r"'-1:0.0' has an id below 0; .* leave the padding of rows out"):
        read_predictions(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    ids = np.array([[3, 1], [2, -1], [-1, -1]])
    scores = np.array([[0.1, 0.07], [1e-9, 0], [0, 0]], np.float32)
    file = io.BytesIO()
    write_predictions(file, ids, scores)
    path = tmp_path / "predictions.txt"
    path.write_bytes(file.getvalue())
    read = read_predictions(path, k=2)
    np.testing.assert_array_equal(read[0], ids)
    np.testing.assert_array_equal(read[1], scores)


@pytest.mark.parametrize("name", ["predictions.txt", "predictions.txt.gz"])
def test_a_path_is_written_atomically(tmp_path: Path, name: str) -> None:
    ids, scores = np.array([[3, 1], [2, -1]]), np.array([[0.5, 0.25], [1, 0]], np.float32)
    path = tmp_path / name
    for given in (path, str(path)):
        write_predictions(given, ids, scores)
        np.testing.assert_array_equal(read_predictions(path)[0], ids)
    before = path.read_bytes()
    assert before.startswith(b"\x1f\x8b") == name.endswith(".gz")
    with pytest.raises(TypeError):  # the second line fails, after the first was written
        write_predictions(path, np.array([[3], [None]]), scores[:, :1])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_json_lines_are_ordered_by_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"

    def labels(*ids: object) -> list[int]:
        rows = [json.dumps({"id": id, "labels": [i], "scores": [1]}) for i, id in enumerate(ids)]
        path.write_text("\n".join(rows))
        return read_predictions(path)[0][:, 0].tolist()

    assert labels("2", "3", "1") == labels(2, 3, 1) == [2, 0, 1]
    assert labels("b", "a", "1") == labels(7, 8, 6) == [0, 1, 2]  # ids of another kind
    with pytest.raises(DataError, match="several rows have the same id"):
        labels("1", "1", "2")


def test_json_lines_with_names(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text('{"labels": ["b", "a"], "scores": [0.9, 0.2]}\n{"labels": [], "scores": []}\n')
    ids, scores = read_predictions(path, label_names=["a", "b"])
    assert ids.tolist() == [[1, 0], [-1, -1]]
    (tmp_path / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_predictions(tmp_path / "bom.jsonl", label_names=["a", "b"])[0].tolist() == ids.tolist()
    np.testing.assert_allclose(scores[0], [0.9, 0.2])
    for line, message in (
        ('{"labels": ["z"], "scores": [1]}', "label 'z' is not one of the data's labels"),
        ('{"labels": [9], "scores": [1]}', "label 9 is not one"),
        ('{"labels": ["a"], "scores": []}', "must be equally many"),
        ('{"text": 1}', r"predictions.jsonl:1: not .*labels"),
    ):
        path.write_text(line)
        with pytest.raises(DataError, match=message):
            read_predictions(path, label_names=["a", "b"], n_labels=2)


@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_tables(tmp_path: Path, delimiter: str, start: bytes) -> None:
    lines = ["id,rank,label,score", "1,1,b,0.5", "1,2,a,0.5", "2,,,", "3,1,2,0.75", ""]
    path = tmp_path / "predictions.csv"
    path.write_bytes(start + "\r\n".join(lines).replace(",", delimiter).encode())
    names = ["a", "b", "c, d"]
    ids, scores = read_predictions(path, label_names=names, n_labels=3)
    assert ids.tolist() == [[1, 0], [-1, -1], [2, -1]]
    assert scores.tolist() == [[0.5, 0.5], [0, 0], [0.75, 0]]
    shuffled = [lines[0], *reversed(lines[1:-1])]
    path.write_text("\n".join(shuffled).replace(",", delimiter))
    assert read_predictions(path, label_names=names, n_labels=3)[0].tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,1,z,0.5", r"p.csv:2: .* \(label 'z' is not one of the data's labels"),
        ("1,1,9,0.5", "label 9 is not one"),
        ("1,1,0,nan", "the score is not finite"),
        ("first,1,0,1", "p.csv:2: not the number of a row, a rank, a label and a score"),
        ("1,1,0", "p.csv:2: not the number"),
        ("2,1,0,0.5", "has no line with the id 1; the ids are the row numbers, from 1"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"id,rank,label,score\n{line}\n")
    with pytest.raises(DataError, match=message):
        read_predictions(path, label_names=["a", "b"], n_labels=2)
