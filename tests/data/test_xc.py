"""Reading and writing XC text and its relatives: what works, what is repaired, what is rejected."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array, save_npz

from exmlds import DataError, DataWarning
from exmlds.data import (
    Dataset,
    iter_xc,
    make_xmc,
    read_label_filter,
    read_names,
    read_sparse,
    read_xc,
    write_npz,
    write_xc,
)

THREE = "3 4 3\n0,2 1:0.5 3:2\n1 0:1\n2 2:1.5\n"
X3 = [[0, 0.5, 0, 2], [1, 0, 0, 0], [0, 0, 1.5, 0]]
Y3 = [[1, 0, 1], [0, 1, 0], [0, 0, 1]]


def written(folder: Path, text: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_is(data: Dataset, X: object, Y: object) -> None:
    np.testing.assert_array_equal(data.X.toarray(), np.array(X, np.float32))
    np.testing.assert_array_equal(data.Y.toarray(), np.array(Y, np.float32))


@pytest.mark.parametrize(
    "text",
    [
        THREE,
        THREE.rstrip("\n"),
        THREE.replace("\n", "\r\n"),
        THREE.replace("\n", "\r\r\n"),
        THREE.replace("\n", "  \n"),
        THREE + "\n\n",
        THREE + "  \n \n",
        "\ufeff" + THREE,
        "# two lines\n# of comment\n" + THREE,
        THREE.replace(" ", "\t"),
        THREE.replace("0:1\n", "0\n"),
        THREE.replace("3 4 3", "3 4 3 "),
    ],
    ids=[
        "plain",
        "no end",
        "crlf",
        "crcrlf",
        "trailing blanks",
        "blank lines",
        "lines of blanks",
        "bom",
        "comments",
        "tabs",
        "value missing",
        "header with a blank",
    ],
)
def test_variants_of_one_file(tmp_path: Path, text: str) -> None:
    assert_is(read_xc(written(tmp_path, text)), X3, Y3)


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    assert_is(read_xc(written(tmp_path, gzip.compress(THREE.encode()), "data.anything")), X3, Y3)


def test_without_a_header_the_widths_come_from_the_ids(tmp_path: Path) -> None:
    path = written(tmp_path, THREE.partition("\n")[2])
    assert_is(read_xc(path), X3, Y3)
    wide = read_xc(path, n_features=9, n_labels=7)
    assert (wide.X.shape, wide.Y.shape) == ((3, 9), (3, 7))


def test_rows_with_no_label_or_no_feature(tmp_path: Path) -> None:
    path = written(tmp_path, "5 2 2\n 0:1\n1\n\n \n0 1:2\n")
    assert_is(
        read_xc(path), [[1, 0], [0, 0], [0, 0], [0, 0], [0, 2]], [[0, 0], [0, 1], [0, 0], [0, 0], [1, 0]]
    )


def test_empty_rows_at_the_end_count_when_the_header_says_so(tmp_path: Path) -> None:
    assert read_xc(written(tmp_path, "3 2 2\n0 0:1\n\n\n")).X.shape == (3, 2)
    assert read_xc(written(tmp_path, "1 2 2\n0 0:1\n\n\n")).X.shape == (1, 2)


@pytest.mark.twins
def test_svmlight_with_comments(tmp_path: Path) -> None:
    text = "# made by hand\n1,3 1:0.5 2:2 # a row\n1:7\n2 3:1\n"
    data = read_xc(written(tmp_path, text), one_based=True)
    assert_is(data, [[0.5, 2, 0], [7, 0, 0], [0, 0, 1]], [[1, 0, 1], [0, 0, 0], [0, 1, 0]])


@pytest.mark.twins
def test_ids_out_of_order_and_repeated_give_one_warning(tmp_path: Path) -> None:
    path = written(tmp_path, "2 4 3\n2,0,2 3:1 1:2 3:4\n1,1 0:1 0:1\n")
    with pytest.warns(DataWarning, match=r"2 repeated features were summed, 2 repeated labels") as caught:
        data = read_xc(path)
    assert len(caught) == 1
    assert_is(data, [[0, 2, 0, 5], [2, 0, 0, 0]], [[1, 0, 1], [0, 1, 0]])
    assert data.X.has_sorted_indices
    assert data.Y.indices.tolist() == [0, 2, 1]


@pytest.mark.twins
def test_numbers_are_the_nearest_float32(tmp_path: Path) -> None:
    numbers = ["0.1", "1e-45", "3.4028235e38", "16777217", "0.30000001192092896", "123456789.123456789123"]
    row = " ".join(f"{i}:{number}" for i, number in enumerate(numbers))
    read = read_xc(written(tmp_path, f"0 {row}\n")).X.data
    assert read.tolist() == [np.float32(float(number)) for number in numbers]


def test_split_form(tmp_path: Path) -> None:
    x_path = written(tmp_path, "3 4\n1:0.5 3:2\n0:1\n2:1.5\n", "trn_X_Xf.txt")
    y_path = written(tmp_path, "3 3\n0:1 2:1\n1:1\n2:1\n", "trn_X_Y.txt")
    for path in (x_path, y_path):
        assert_is(read_xc(path), X3, Y3)
    assert_is(read_xc(x_path, y_path), X3, Y3)


def test_half_of_a_pair_alone_names_the_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, "2 4\n1:0.5 3:2\n0:1\n", "features.txt")
    with pytest.raises(DataError, match="name both"):
        read_xc(path)
    assert read_sparse(path).shape == (2, 4)


def test_pairs_must_have_the_same_rows(tmp_path: Path) -> None:
    x_path = written(tmp_path, "2 4\n1:0.5 3:2\n0:1\n", "trn_X_Xf.txt")
    written(tmp_path, "1 3\n0:1 2:1\n", "trn_X_Y.txt")
    with pytest.raises(DataError, match="has 2 rows.*has 1; they must describe the same rows"):
        read_xc(x_path)


def test_npz_pairs(tmp_path: Path) -> None:
    data = read_xc(written(tmp_path, THREE))
    x_path, y_path = write_npz(tmp_path / "X.trn.npz", data)
    assert (x_path.name, y_path.name) == ("X.trn.npz", "Y.trn.npz")
    for path in (x_path, y_path):
        assert_is(read_xc(path), X3, Y3)
    assert_is(read_xc(x_path, y_path), X3, Y3)


def test_names_beside_the_file(tmp_path: Path) -> None:
    written(tmp_path, "a\nb\t\r\nc\n", "label_names.txt")
    written(tmp_path, "w\nx\ny\nz", "vocab.txt")
    data = read_xc(written(tmp_path, THREE))
    assert (data.label_names, data.feature_names) == (["a", "b", "c"], ["w", "x", "y", "z"])
    written(tmp_path, "w\nx", "vocab.txt")
    with pytest.warns(DataWarning, match=r"has 2 lines, but data.txt has 4 columns"):
        assert read_xc(written(tmp_path, THREE)).feature_names is None


def test_repeated_label_names_get_their_number(tmp_path: Path) -> None:
    written(tmp_path, "a\nb\na\n", "label_names.txt")
    with pytest.warns(DataWarning, match="1 names are repeated"):
        assert read_xc(written(tmp_path, THREE)).label_names == ["a", "b", "a #2"]


def test_repeated_features_may_not_overflow(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sum to more than a float32 can hold"):
        read_xc(written(tmp_path, "0 1:3e38 1:3e38\n"))


def test_names_widen_a_file_without_a_header(tmp_path: Path) -> None:
    written(tmp_path, "a\nb\nc\nd\ne", "label_names.txt")
    path = written(tmp_path, THREE.partition("\n")[2])
    with pytest.warns(
        DataWarning, match="label_names.txt has 5 lines, but the largest id of .* gets 5 columns"
    ):
        assert read_xc(path).Y.shape == (3, 5)


def test_names_must_be_utf8(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"names.txt:2: not UTF-8"):
        read_names(written(tmp_path, b"ok\n\xff\n", "names.txt"))


@pytest.mark.twins
def test_label_filter(tmp_path: Path) -> None:
    path = written(tmp_path, "0 2\n0 1\n2 0\n0 2\n", "filter_labels_test.txt")
    np.testing.assert_array_equal(
        read_label_filter(path, (3, 3)).toarray(), [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    )
    with pytest.raises(DataError, match=r"filter.txt:2: a label filter has two ids per line"):
        read_label_filter(written(tmp_path, "0 2\n0 1 2\n", "filter.txt"), (3, 3))
    with pytest.raises(DataError, match=r"filter.txt:1: row 7 is out of range; there are 3 rows"):
        read_label_filter(written(tmp_path, "7 2\n", "filter.txt"), (3, 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 2\n0 1:x\n", r":2: '1:x' is not a number"),
        ("1 2 2\n0 0:1 1:", r":2: '1:' is not a number"),
        ("1 2 2\nzero 1:1\n", r":2: 'zero' is not a whole number"),
        ("2 2 2\n0 1:1\n0 1:1 -1:1\n", r":3: '-1:1' has an id below 0"),
        ("1 2 2\n-1 1:1\n", r":2: '-1' has an id below 0"),
        ("1 2 2\n0 2:1\n", r":2: feature index 2 is out of range; the header declares 2 features"),
        ("1 2 2\n2 1:1\n", r":2: label 2 is out of range; the header declares 2 labels"),
        ("1 2 2\n0 1:nan\n", r":2: '1:nan' is not a finite"),
        ("1 2 2\n0 1:1e40\n", r":2: '1:1e40' is not a finite"),
        ("1 2 2\n0 1:1e400\n", r":2: '1:1e400' is not a finite"),
        ("1 2 2\n0 1:-inf\n", r":2: '1:-inf' is not a finite"),
        ("1 2 2\n0,,1 1:1\n", r":2: ',1' has an empty label id"),
        ("1 2 2\r0 1:1\r", r":1: a .r within a line; end lines in .n"),
        ("1 2 2\r\x0b\n0 1:1\n", r":1: a .r within a line"),
        ("1 2 2\r\n0 1:1\r1 1:1\r\n", r":2: a .r within a line"),
        ("1 2 2 7\n0 1:1\n", r":1: 4 numbers are neither a header, .* nor a row"),
        ("3 2 2\n0 1:1\n", r":1: the header declares 3 rows, the file has 1"),
        ("1 2 2\n0 1:1\n0 1:1\n", r":1: the header declares 1 rows, the file has 2"),
        ("1 99999999999 2\n0 1:1\n", r":1: the header declares 99999999999 features; at most"),
        ("0 99999999999999:1\n", r":1: feature index 99999999999999 is out of range"),
        ("", r" is empty"),
        ("\n\n", r" holds no rows"),
        ("0 1:1\0\n", r" is not text"),
        ("\x01\x02\x03 junk", r":1: '\\x01\\x02\\x03' is not a whole number"),
        ("PK\x03\x04 not a zip", r"cannot be read as a sparse matrix|holds one matrix"),
    ],
)
def test_malformed_text_names_file_line_and_token(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=message) as error:
        read_xc(path)
    assert str(path) in str(error.value)


def test_halves_and_names_are_checked_alike(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"half.txt:1: 3 numbers are neither a header, `rows columns`, nor"):
        read_sparse(written(tmp_path, "2 3 4\n0:1\n1:1\n", "half.txt"))
    with pytest.raises(DataError, match=r"names.txt ends its lines in .r alone"):
        read_names(written(tmp_path, "a\rb\rc\r", "names.txt"))


def test_rows_of_bare_ids_are_no_header(tmp_path: Path) -> None:
    data = read_xc(written(tmp_path, "0 1 2 3\n1 0 2 3\n"))
    assert_is(data, [[0, 1, 1, 1], [1, 0, 1, 1]], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("100000000 1:1\n", "label 100000000 is far above the number of labels, 4; is it mistyped"),
        ("1 3000000:1\n", "feature 3000000 is far above the number of features, 3; .* 3,000,001 columns"),
    ],
)
def test_a_mistyped_id_is_named(tmp_path: Path, row: str, message: str) -> None:
    path = written(tmp_path, f"# a comment\n0 1:1\n1 2:1\n# another\n{row}2 1:1\n")
    with pytest.warns(DataWarning, match=f"data.txt:5: {message}"):
        read_xc(path)
    path.write_text(f"4 3000001 100000001\n0 1:1\n1 2:1\n{row}2 1:1\n")
    read_xc(path)  # the header declares the sizes


def test_ids_with_few_gaps_are_no_mistake(tmp_path: Path) -> None:
    rows = "".join(f"{i} {i * 90}:1\n" for i in range(12_000))
    assert read_xc(written(tmp_path, rows)).X.shape[1] == 90 * 11_999 + 1


def test_a_huge_header_allocates_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="declares 999999999999999 rows, the file has 1"):
        read_xc(written(tmp_path, "999999999999999 2000000000 2000000000\n0 1:1\n"))
    assert read_xc(written(tmp_path, "1 2000000000 2000000000\n0 1:1\n")).X.shape == (1, 2_000_000_000)


def test_missing_files_folders_and_damaged_gzip(tmp_path: Path) -> None:
    path = written(tmp_path, THREE, "train.txt")
    with pytest.raises(DataError, match=r"no such file. Did you mean .*train.txt\?"):
        read_xc(tmp_path / "trian.txt")
    with pytest.raises(DataError, match=r"is a folder; name a file in it. It holds: train.txt"):
        read_xc(tmp_path)
    packed = gzip.compress(path.read_bytes() * 50)
    with pytest.raises(DataError, match="damaged or truncated gzip"):
        read_xc(written(tmp_path, packed[:-9], "cut.gz"))


def test_header_can_be_decided(tmp_path: Path) -> None:
    path = written(tmp_path, "1 0 1\n0 0 1\n")  # without values, the first line may be a header or a row
    assert read_xc(path, header=False).X.shape == (2, 2)
    with pytest.raises(DataError, match="label 0|feature index"):
        read_xc(written(tmp_path, "1 1 1\n0 0 1\n"))
    with pytest.raises(DataError, match=r":1: expected a header, `rows features labels`"):
        read_xc(written(tmp_path, "0 1:1\n"), header=True)
    with pytest.raises(DataError, match=r":1: expected a header"):
        read_xc(written(tmp_path, "1 4\n2,4 1:1\n"), header=True)


def test_blocks_give_the_same_rows(tmp_path: Path) -> None:
    data = make_xmc(300, 40, 20, random_state=0)
    path = tmp_path / "data.txt"
    write_xc(path, data)
    pieces = list(iter_xc(path, block=1000))
    assert len(pieces) > 5
    np.testing.assert_array_equal(np.vstack([p.X.toarray() for p in pieces]), data.X.toarray())
    np.testing.assert_array_equal(np.vstack([p.Y.toarray() for p in pieces]), data.Y.toarray())
    bare = written(tmp_path, path.read_bytes().partition(b"\n")[2], "bare.txt")
    with pytest.raises(DataError, match="pass n_features"):
        next(iter_xc(bare))
    assert sum(p.X.shape[0] for p in iter_xc(bare, n_features=40)) == 300


@pytest.mark.twins
def test_blocks_may_end_anywhere(tmp_path: Path) -> None:
    text = "4 3 2\n0 1:0.25\n\n\n1 2:1\n"
    whole = read_xc(written(tmp_path, text))
    for size in range(1, len(text) + 1):
        pieces = list(iter_xc(written(tmp_path, text), block=size))
        np.testing.assert_array_equal(np.vstack([p.X.toarray() for p in pieces]), whole.X.toarray())


@pytest.mark.twins
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.sampled_from([".txt", ".txt.gz"]))
def test_writing_and_reading_gives_the_same(tmp_path: Path, seed: int, suffix: str) -> None:
    rng = np.random.default_rng(seed)
    X = csr_matrix(random_array((9, 7), density=0.3, random_state=rng, dtype=np.float32))
    X.data *= np.float32(10.0) ** rng.integers(-30, 30, X.nnz).astype(np.float32)
    Y = csr_matrix(random_array((9, 5), density=0.2, random_state=rng) > 0, dtype=np.float32)
    path = tmp_path / f"round{suffix}"
    write_xc(path, Dataset(X, Y))
    assert_is(read_xc(path), X.toarray(), Y.toarray())


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    path = written(tmp_path, "precious")
    broken = Dataset(csr_matrix(np.eye(2, dtype=np.float32)), csr_matrix((1, 1), dtype=np.float32))
    with pytest.raises(DataError, match="X has 2 rows, but Y has 1"):
        write_xc(path, broken)
    with pytest.raises(DataError, match="not finite"):
        write_xc(path, Dataset(csr_matrix(np.array([[np.nan]])), csr_matrix(np.ones((1, 1)))))
    assert [p.name for p in tmp_path.iterdir()] == ["data.txt"]
    assert path.read_text() == "precious"
    with pytest.raises(DataError, match="cannot be written"):
        write_xc(tmp_path / "no" / "such" / "folder.txt", make_xmc(3, 3, 3))


def outcome(path: Path) -> str:
    """Reading returns, or raises DataError and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            data = read_xc(path)
        except DataError as error:
            assert str(path.parent) in str(error)
            return "refused"
    data.X.check_format(full_check=True)
    data.Y.check_format(full_check=True)
    assert np.isfinite(data.X.data).all()
    assert data.X.shape[0] == data.Y.shape[0]
    return "read"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text("0123456789 ,:.-e\n\r\t#", max_size=60).map(str.encode))
def test_fuzz_anything(tmp_path: Path, raw: bytes) -> None:
    assert outcome(written(tmp_path, raw)) in ("read", "refused")


def mutated(raw: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with a few of them changed, inserted, deleted or truncated."""
    damaged = bytearray(raw)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(damaged)))
        match rng.integers(5):
            case 0:
                damaged[at] = rng.integers(256)
            case 1:
                damaged[at] = int(rng.choice(list(b"0123456789 ,:.-e\n\r#")))
            case 2:
                damaged[at:at] = bytes(
                    rng.choice(list(b"0123456789 ,:.-en"), size=rng.integers(1, 12)).tolist()
                )
            case 3:
                del damaged[at : at + int(rng.integers(1, 30))]
            case 4:
                del damaged[at:]
        damaged = damaged or bytearray(b"\n")
    return bytes(damaged)


@pytest.mark.parametrize("form", ["text", "gzip", "npz"])
def test_fuzz_mutated_files(tmp_path: Path, form: str, library: Dataset) -> None:
    path = tmp_path / {"text": "f.txt", "gzip": "f.txt.gz", "npz": "X.f.npz"}[form]
    if form == "npz":
        write_npz(path, library.rows(slice(0, 20)))
    else:
        write_xc(path, library.rows(slice(0, 20)))
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    outcomes = {outcome(written(tmp_path, mutated(raw, rng), path.name)) for _ in range(300)}
    assert "refused" in outcomes


@pytest.mark.data
@pytest.mark.slow
def test_fuzz_mutated_real_files(tmp_path: Path, real_data: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("bibtex", "citeulike-t", "rcv1subset1"):
        with gzip.open(real_data / name / "train.txt.gz") as file:
            lines = file.read(200_000).split(b"\n")[1:-1]
        raw = b"%d 50000 60000\n" % len(lines) + b"\n".join(lines) + b"\n"
        assert outcome(written(tmp_path, raw)) == "read"
        outcomes = [outcome(written(tmp_path, mutated(raw, rng))) for _ in range(60)]
        assert outcomes.count("refused") > 20


def test_npz_that_is_no_sparse_matrix(tmp_path: Path) -> None:
    np.savez(tmp_path / "X.a.npz", array=np.eye(2))
    save_npz(tmp_path / "Y.a.npz", csr_matrix(np.eye(2)))
    with pytest.raises(DataError, match="cannot be read as a sparse matrix"):
        read_xc(tmp_path / "X.a.npz")
    save_npz(tmp_path / "X.a.npz", csr_matrix(np.array([[np.nan, 0], [1, 1]])))
    with pytest.raises(DataError, match="not finite"):
        read_xc(tmp_path / "X.a.npz")


@pytest.mark.data
def test_real_files_agree_with_their_headers(real_data: Path) -> None:
    for name, shape, n_labels in (("bibtex", (4880, 1836), 159), ("citeulike-t", (18182, 20000), 52946)):
        data = read_xc(real_data / name / "train.txt.gz")
        assert (data.X.shape, data.Y.shape) == (shape, (shape[0], n_labels))
        assert len(data.label_names or []) == n_labels


@pytest.mark.data
@pytest.mark.slow
def test_eurlex_is_what_scikit_learn_reads(eurlex_text: Path, tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    data = read_xc(eurlex_text)
    bare = written(tmp_path, eurlex_text.read_bytes().partition(b"\n")[2])
    X, labels = load_svmlight_file(
        str(bare), multilabel=True, zero_based=True, n_features=5000, dtype=np.float32
    )
    assert (data.X != X).nnz == 0
    rows = np.split(data.Y.indices, data.Y.indptr[1:-1])
    assert all(sorted(map(int, theirs)) == ours.tolist() for theirs, ours in zip(labels, rows))
