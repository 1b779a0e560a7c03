"""Small files for every reader: valid ones, whose right answer is known, and damaged ones.

A damaged file must be refused with a DataError, or be read as something that its bytes can mean. For XC text,
a slow and strict parser of the whole file says what that is.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, save_npz

from exmlds import data
from exmlds.data.npz import MatrixSpool
from exmlds.data.text import stream_texts
from exmlds.errors import DataError, DataWarning

LIMIT = 20.0  # seconds for one case
DAMAGED = 0.65  # the share of cases with damaged files
PROSE = """sea tide harbour bread yeast tax law parliament keeper goal red card ant nest soil rain Köln łódź
東京 naïve the of and in a it's "quoted" 50% C++ 1984 3.14 end. Why? (x)"""
WORDS = PROSE.split()
LABELS = ["birds", "sea", "tax law", "Ökologie", "a-b", "42", "c/d", "語", "x" * 40]
URIS = [f"http://example.org/{name}" for name in ("p1", "p2", "ö", "a#b", "c?d=e")]

# Tokens that readers have to refuse, or that mean something else than they seem to.
ODD = [
    *(b"\0", b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b" ", b"\x0b", b"\x1a", b" 1: "),
    b"1:0." + b"0" * 60 + b"1",
    *b"# , : :: - + . 1: :1 -1:2 -1 1:- 1:1:1 1,,2 ,1 1, 1.5:2 1:1e 1:. 0:-0 1:3.5e38 1:1e-50 1_0:1".split(),
    *b"99999999999999999999:1 2147483647:1 2147483648:1 100000000:1 4294967296".split(),
    *b"1:1e400 1:nan 1:inf 1:0x10 null true 1e999 NaN | ; < > <> __label__ PAR1".split(),
    *rb"""" "" ' \ \ud800 \u0000 { } [ ] [[[[""".split(),
    *(text.encode() for text in ("٣:1", "\u2028", "\u00a0", "\ufeff", "1:" + "9" * 60)),
    *(b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY"),
]


class WrongAnswer(AssertionError):
    """A reader returned something that the file does not say."""


class Case(NamedTuple):
    """Files, the reader to call with their folder, and what it has to return.

    may_refuse : a DataError is right too, because the format is detected from few lines
    meaning : of the bytes of the first file, what a reader may make of them; None if it has to refuse them
    """

    files: dict[str, bytes]
    read: Callable[[Path], Any]
    right: Any
    may_refuse: bool = False
    meaning: Callable[[bytes], Any] | None = None


def prepare(folder: Path) -> None:
    """Nothing is shared by the cases."""


def opened(folder: Path) -> Callable[[int], str]:
    """A function that runs the case of a seed in this folder, and returns its outcome."""
    folder = folder / "files"
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DataWarning)

    def run(seed: int) -> str:
        case, damaged = make(seed)
        written = [folder / name for name in case.files]
        for path, raw in zip(written, case.files.values()):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(raw)
        try:
            return outcome(case, damaged, folder)
        finally:
            for path in written:
                path.unlink()
            left = [path for path in folder.iterdir() if not path.is_dir()]
            if left:
                raise WrongAnswer(f"a reader left {left[0].name} behind")

    return run


def make(seed: int) -> tuple[Case, bool]:
    """The case of a seed, and whether its files are damaged."""
    rng = Random(f"readers {seed}")
    makers, weights = zip(*MAKERS.items())
    case = rng.choices(makers, weights)[0](rng)
    damaged = rng.random() < DAMAGED
    if damaged:
        names = list(case.files)
        name = names[0] if rng.random() < 0.7 else rng.choice(names)
        case.files[name] = damage(rng, case.files[name])
    elif rng.random() < 0.1:
        case.files.update({name: b"\xef\xbb\xbf" + raw for name, raw in case.files.items() if _is_plain(raw)})
    if rng.random() < 0.1 and "pipe" not in case.files:
        name = rng.choice(list(case.files))
        case.files[name] = gzip.compress(case.files[name], 1)
        if damaged and rng.random() < 0.5:
            case.files[name] = damage(rng, case.files[name])
    return case, damaged


def _is_plain(raw: bytes) -> bool:
    return not raw.startswith((b"PK", b"PAR1", b"\x93NUMPY", b"\x1f\x8b"))


def outcome(case: Case, damaged: bool, folder: Path) -> str:
    try:
        answer = case.read(folder)
    except DataError as error:
        if not damaged and not case.may_refuse:
            raise WrongAnswer(f"a valid file is refused: {error}") from error
        return "refused"
    check(answer)
    if damaged:
        name, raw = next(iter(case.files.items()))
        if case.meaning is not None and not raw.startswith(b"\x1f\x8b"):
            meaning = case.meaning(raw)
            if meaning is None:
                raise WrongAnswer(f"{name} is malformed, but it was read")
            if not _same(answer, meaning):
                raise WrongAnswer(f"{name} was read as {str(answer)[:200]}, and means {str(meaning)[:200]}")
        return "read"
    if not _same(answer, case.right):
        raise WrongAnswer(f"got {str(answer)[:200]}, not {str(case.right)[:200]}")
    return "right"


def check(answer: Any) -> None:
    """What holds for every answer: numbers are finite, texts can be written as UTF-8."""
    if isinstance(answer, (list, tuple)):
        for part in answer:
            check(part)
    elif isinstance(answer, str):
        answer.encode()
    elif isinstance(answer, float) and not np.isfinite(answer):
        raise WrongAnswer(f"{answer} was read")


def _same(answer: Any, right: Any) -> bool:
    if isinstance(answer, float) or isinstance(right, float):  # repeated features are summed in any order
        return abs(answer - right) <= 1e-5 * max(abs(answer), abs(right), 1e-30)
    if isinstance(answer, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(answer) == len(right) and all(map(_same, answer, right))
    return bool(answer == right)


def damage(rng: Random, raw: bytes) -> bytes:
    """The bytes with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        raw = rng.choice(CHANGES)(rng, raw)
    return raw


def _flip(rng: Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw) or 1)
    return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :] if raw else raw


def _cut(rng: Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def _delete(rng: Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + raw[at + rng.randrange(1, 20) :]


def _insert(rng: Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + rng.choice(ODD) + raw[at:]


def _replace_token(rng: Random, raw: bytes) -> bytes:
    tokens = re.findall(rb"[^ \n\t,]+", raw)
    return raw.replace(rng.choice(tokens), rng.choice(ODD), 1) if tokens else rng.choice(ODD)


def _lines(rng: Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines[at], lines[other] = lines[other], lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            del lines[at]
        case 3:
            lines[at] += rng.choice((b" 7", b"\t", b" 3 4", b" #", b"," * 3, b"\r"))
    return b"\n".join(lines)


def _encode(rng: Random, raw: bytes) -> bytes:
    text = raw.decode("utf-8", "replace")
    match rng.randrange(6):
        case 0:
            return raw.replace(b"\n", b"\r")
        case 1:
            return raw.replace(b"\n", b"\r\n")
        case 2:
            return text.encode("utf-16")
        case 3:
            return text.encode("latin-1", "replace")
        case 4:
            return codecs.BOM_UTF8 * rng.randrange(1, 3) + raw
        case _:
            return raw + raw


def _lengthen(rng: Random, raw: bytes) -> bytes:
    """A very long line; it is rare, because it takes long."""
    if rng.random() < 0.95:
        return _insert(rng, raw)
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + rng.choice((b"7", b" 1:0", b"[", b"a ", b'"', b"\n", b",1")) * 40_000 + raw[at:]


CHANGES = (_flip, _cut, _delete, _insert, _insert, _replace_token, _replace_token, _lines, _encode, _lengthen)


# Numbers

Row = tuple[list[int], list[int], list[float]]  # labels, features and values


def _numbers(rng: Random, n_features: int, n_labels: int) -> list[Row]:
    """Rows with sorted ids, and values that a float32 holds exactly."""
    rows = []
    for _ in range(rng.randrange(1, 6)):
        features = sorted(rng.sample(range(n_features), rng.randrange(min(n_features, 5) + 1)))
        labels = sorted(rng.sample(range(n_labels), rng.randrange(min(n_labels, 3) + 1)))
        rows.append((labels, features, [rng.choice((1.0, 0.5, -2.0, 3e-5, 1e10, 0.1)) for _ in features]))
    return rows


def _value(rng: Random, value: float) -> str:
    return rng.choice(
        (repr(value), f"{value:e}", f"{value:.17g}", f"{value:.12f}" if value > 1e-3 else repr(value))
    )


def _line(rng: Random, row: Row, base: int = 0) -> str:
    labels, features, values = row
    pairs = [f"{f + base}:{_value(rng, v)}" for f, v in zip(features, values)]
    return f"{','.join(str(label + base) for label in labels)} {' '.join(pairs)}"


def _float32(rows: list[Row]) -> list[Row]:
    return [(labels, features, np.array(values, np.float32).tolist()) for labels, features, values in rows]


def _rows_of(X: csr_matrix, Y: csr_matrix) -> list[Row]:
    for matrix in (X, Y):
        matrix.check_format(full_check=True)
    if not np.isfinite(X.data).all():
        raise WrongAnswer("a value is not finite")
    features, values, labels = X.indices.tolist(), X.data.tolist(), Y.indices.tolist()
    return [
        (labels[Y.indptr[i] : Y.indptr[i + 1]], features[a:b], values[a:b])
        for i, (a, b) in enumerate(zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()))
    ]


def _filled(rows: list[Row]) -> list[Row]:
    """The rows up to the last one that is not empty; blank lines at the end may be rows or nothing."""
    while rows and not (rows[-1][0] or rows[-1][1]):
        rows = rows[:-1]
    return rows


_ID = re.compile(rb"[0-9]+")
_PAIR = re.compile(rb"([0-9]+):([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")


def xc_meaning(raw: bytes, header: bool) -> list[Row] | None:
    """The rows of XC text without regard to speed; None if it is malformed."""
    raw = re.sub(rb"[ \t\r]+\n", b"\n", raw.removeprefix(codecs.BOM_UTF8))
    if b"\r" in raw.rstrip(b"\r"):
        return None  # lines end in \n or \r\n
    lines = [line for line in raw.split(b"\n") if not line.startswith(b"#")]
    first = lines[0].split() if lines else []
    bare = bool(first) and all(map(_ID.fullmatch, first))
    if header and not (bare and len(first) == 3):
        return None
    # Two numbers are the header of a file of features, if no row of labels follows.
    half = bare and len(first) == 2 and not re.match(rb"[0-9][^: \t]*([ \t]|$)", b"".join(lines[1:2]))
    if bare and (len(first) == 3 or half):
        lines = lines[1:]
    elif bare and len(first) > 3 and any(b":" in line for line in lines):
        return None  # it is no row of this file, and no header
    rows = []
    for line in lines:
        content = line.partition(b"#")[0]
        tokens = re.split(rb"[ \t\r]+", content.strip(b" \t\r")) if content.strip(b" \t\r") else []
        labels: list[int] = []
        if not half and tokens and not content.startswith((b" ", b"\t", b"\r")) and b":" not in tokens[0]:
            parts = tokens.pop(0).split(b",")
            if not all(map(_ID.fullmatch, parts)):
                return None
            labels = sorted({int(part) for part in parts})
        values: dict[int, float] = {}
        for token in tokens:
            pair = _PAIR.fullmatch(token)
            if pair is None and not _ID.fullmatch(token):
                return None
            feature, value = (int(pair[1]), float(np.float32(pair[2]))) if pair else (int(token), 1.0)
            values[feature] = values.get(feature, 0.0) + value
        rows.append((labels, sorted(values), [values[feature] for feature in sorted(values)]))
    return _filled(rows)


def xc(rng: Random) -> Case:
    d, n_labels = rng.randrange(1, 12), rng.randrange(1, 8)
    rows = _numbers(rng, d, n_labels)
    header, blocks = rng.random() < 0.7, rng.random() < 0.3
    newline = rng.choice(("\n", "\n", "\n", "\r\n"))
    lines = [f"{len(rows)} {d} {n_labels}"] * header + [_line(rng, row) for row in rows]
    if not header and rng.random() < 0.2:
        lines = [f"{line}  # a comment" for line in lines]
    raw = (newline.join(lines) + newline * (rng.random() < 0.9)).encode()

    def read(folder: Path) -> list[Row]:
        path = folder / "data.txt"
        if not blocks:
            return _filled(_rows_of(*data.read_xc(path)[:2]))
        pieces = data.iter_xc(path, n_features=None if header else d, block=rng.choice((8, 64)))
        return _filled([row for piece in pieces for row in _rows_of(*piece[:2])])

    right = _filled(_float32(rows))
    ambiguous = not header and (not right or d < 2)  # no row at all, or rows that look like a header
    return Case({"data.txt": raw}, read, right, ambiguous, lambda raw: xc_meaning(raw, False))


def xc_written(rng: Random) -> Case:
    """What `write_xc` writes, with names beside it, and options that agree with it."""
    d, n_labels = rng.randrange(1, 12), rng.randrange(1, 8)
    rows = _numbers(rng, d, n_labels)
    one_based = rng.random() < 0.3
    names = [f"{rng.choice(WORDS)} {i}" for i in range(n_labels)]
    lines = [f"{len(rows)} {d} {n_labels}", *(_line(rng, row, int(one_based)) for row in rows)]
    files = {
        "data.txt": "\n".join([*lines, ""]).encode(),
        "label_names.txt": "\n".join([*names, ""]).encode(),
    }

    def read(folder: Path) -> Any:
        found = data.read_xc(
            folder / "data.txt", header=True, one_based=one_based, n_features=d, n_labels=n_labels
        )
        assert data.declared_rows(folder / "data.txt") == found.X.shape[0]
        return _rows_of(found.X, found.Y), found.X.shape, found.Y.shape, found.label_names

    shapes = (len(rows), d), (len(rows), n_labels)
    return Case(files, read, (_float32(rows), *shapes, names))


def split_form(rng: Random) -> Case:
    d, n_labels = rng.randrange(1, 12), rng.randrange(1, 8)
    rows = [row for row in _numbers(rng, d, n_labels) if row[0] and row[1]] or [([0], [0], [1.0])]
    x_lines = [f"{len(rows)} {d}", *(_line(rng, ([], *row[1:])).strip() for row in rows)]
    y_lines = [f"{len(rows)} {n_labels}", *(" ".join(f"{label}:1" for label in row[0]) for row in rows)]
    files = {
        name: "\n".join([*lines, ""]).encode()
        for name, lines in zip(("X_Xf.txt", "X_Y.txt"), (x_lines, y_lines))
    }
    which = rng.choice(list(files))

    def read(folder: Path) -> Any:
        found = data.read_xc(folder / which)
        return _rows_of(found.X, found.Y), found.X.shape, found.Y.shape

    return Case(files, read, (_float32(rows), (len(rows), d), (len(rows), n_labels)))


def npz(rng: Random) -> Case:
    d, n_labels = rng.randrange(1, 12), rng.randrange(1, 8)
    rows = _numbers(rng, d, n_labels)
    X, Y = (np.zeros((len(rows), width), np.float32) for width in (d, n_labels))
    for i, (labels, features, values) in enumerate(rows):
        X[i, features] = values
        Y[i, labels] = 1
    files = {}
    for name, matrix in (("X.a.npz", X), ("Y.a.npz", Y)):
        file = io.BytesIO()
        save_npz(file, csr_matrix(matrix), compressed=rng.random() < 0.5)
        files[name] = file.getvalue()
    one = rng.random() < 0.3

    def read(folder: Path) -> Any:
        if one:
            found = data.read_cooccurrence(folder / "X.a.npz")
            return _rows_of(found, csr_matrix((found.shape[0], 1), dtype=np.float32))
        return _rows_of(*data.read_xc(folder / "X.a.npz")[:2])

    return Case(files, read, _float32([([], *row[1:]) for row in rows] if one else rows))


def mapped_npz(rng: Random) -> Case:
    d, n_labels = rng.randrange(1, 12), rng.randrange(1, 8)
    rows = _numbers(rng, d, n_labels)
    files = {}
    for name, width in (("X.a.npz", d), ("Y.a.npz", n_labels)):
        file = io.BytesIO()
        with MatrixSpool(Path(name)) as spool:
            for labels, features, values in rows:
                row = np.zeros((1, width), np.float32)
                row[0, features if name == "X.a.npz" else labels] = values if name == "X.a.npz" else 1
                spool.append(row)
            spool.save(file)
        files[name] = file.getvalue()
    return Case(files, lambda folder: _rows_of(*data.read_xc(folder / "X.a.npz")[:2]), _float32(rows))


def npy(rng: Random) -> Case:
    matrix = np.array(
        [[rng.choice((0.0, 1.0, 2.5)) for _ in range(4)] for _ in range(4)], rng.choice(("f4", "f8"))
    )
    file = io.BytesIO()
    np.save(file, matrix)

    def read(folder: Path) -> Any:
        found = data.read_cooccurrence(folder / "C.npy")
        found.check_format(full_check=True)
        return found.toarray().tolist() if max(found.shape) < 100 else []

    return Case({"C.npy": file.getvalue()}, read, matrix.tolist())


def predictions(rng: Random) -> Case:
    n_labels, n = rng.randrange(1, 9), rng.randrange(1, 6)
    rows = [rng.sample(range(n_labels), rng.randrange(n_labels + 1)) for _ in range(n)]
    scores = [[round(1 - 0.1 * rank, 2) for rank in range(len(row))] for row in rows]
    names = [f"{rng.choice(LABELS)} {i}" for i in range(n_labels)]
    as_json = rng.random() < 0.5
    if as_json:
        by_name = rng.random() < 0.5
        lines = [
            json.dumps(
                {"labels": [names[i] for i in row] if by_name else row, "scores": values}, ensure_ascii=False
            )
            for row, values in zip(rows, scores)
        ]
    else:
        lines = [
            " ".join(f"{i}:{v}" for i, v in zip(row, values)) or " " for row, values in zip(rows, scores)
        ]
        lines = [f"{n} {n_labels}"] * (rng.random() < 0.5) + lines

    def read(folder: Path) -> Any:
        ids, found = data.read_predictions(folder / "p.txt", n_labels=n_labels, label_names=names)
        if not np.isfinite(found).all() or ids.max(initial=-1) >= n_labels:
            raise WrongAnswer("a score is not finite, or a label is out of range")
        return [[i for i in row if i >= 0] for row in ids.tolist()]

    return Case({"p.txt": "\n".join([*lines, ""]).encode()}, read, rows)


def label_filter(rng: Random) -> Case:
    pairs = sorted({(rng.randrange(20), rng.randrange(10)) for _ in range(rng.randrange(1, 8))})
    raw = "".join(f"{row} {label}\n" for row, label in pairs).encode()

    def read(folder: Path) -> Any:
        found = data.read_label_filter(folder / "f.txt", (20, 10))
        found.check_format(full_check=True)
        rows, columns = found.nonzero()
        return list(zip(rows.tolist(), columns.tolist()))

    return Case({"f.txt": raw}, read, pairs)


def names(rng: Random) -> Case:
    lines = [prose(rng, 4) or "x" for _ in range(rng.randrange(1, 8))]
    raw = (rng.choice(("\n", "\r\n")).join(lines) + rng.choice(("", "\n"))).encode()
    return Case({"names.txt": raw}, lambda folder: data.read_names(folder / "names.txt"), lines)


# Texts


def prose(rng: Random, most: int = 12) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(3, most) if most > 3 else rng.randrange(1, most + 1)))


def _documents(rng: Random, labels: list[str]) -> tuple[list[str], list[list[str]]]:
    n = rng.randrange(1, 6)
    return [prose(rng) for _ in range(n)], [rng.sample(labels, rng.randrange(1, 4)) for _ in range(n)]


def _texts(
    rng: Random, format: str, name: str, raw: bytes, texts: list[str], labels: list[list[str]]
) -> Case:
    """A case for `open_texts`, with the format given or detected, with labels or without."""
    given, labelled = rng.random() < 0.5, format != "lines" and rng.random() < 0.8
    given |= format == "libmultilabel" and not labelled  # it may look like plain lines
    errors: Any = rng.choice(("strict", "strict", "replace"))

    def read(folder: Path) -> Any:
        path = folder / name
        data.is_text(path)
        found = data.open_texts(path, format=format if given else None, labelled=labelled, errors=errors)
        documents = list(found)
        for document in documents:
            if document.labels != list(
                dict.fromkeys(label.strip() for label in document.labels if label.strip())
            ):
                raise WrongAnswer(f"labels are not distinct and stripped: {document.labels}")
        return [d.text for d in documents], [d.labels for d in documents]

    right = texts, labels if labelled else [[] for _ in labels]
    return Case({name: raw}, read, right, may_refuse=not given)


def jsonl(rng: Random) -> Case:
    texts, labels = _documents(rng, LABELS)
    field, name = rng.choice(("text", "body", "Title")), rng.choice(("labels", "tags", "subjects"))
    rows = [{field: text, name: own, "id": i} for i, (text, own) in enumerate(zip(texts, labels))]
    raw = "".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n" for row in rows).encode()
    return _texts(rng, "jsonl", "d.jsonl", raw, texts, labels)


def table(rng: Random) -> Case:
    texts, labels = _documents(rng, [label for label in LABELS if label != "42"])
    delimiter = rng.choice((",", ";", "\t"))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=rng.choice(("\n", "\r\n")))
    joined = [json.dumps(own) if rng.random() < 0.3 else "|".join([*own, ""]) for own in labels]
    if rng.random() < 0.3 and delimiter != "\t":
        texts = [f"{text}\nsecond, line" for text in texts]
    writer.writerows([["id", "text", "labels"], *zip(range(len(texts)), texts, joined)])
    format = "tsv" if delimiter == "\t" else "csv"
    return _texts(rng, format, "d.csv", out.getvalue().encode(), texts, labels)


def fasttext(rng: Random) -> Case:
    texts, labels = _documents(rng, [label.replace(" ", "_") for label in LABELS])
    lines = [" ".join([*(f"__label__{name}" for name in own), text]) for text, own in zip(texts, labels)]
    return _texts(rng, "fasttext", "d.txt", "\n".join([*lines, ""]).encode(), texts, labels)


def libmultilabel(rng: Random) -> Case:
    texts, labels = _documents(rng, [label.replace(" ", "_") for label in LABELS])
    with_id = rng.random() < 0.5
    lines = [
        "\t".join([f"d{i}"] * with_id + [" ".join(own), text])
        for i, (text, own) in enumerate(zip(texts, labels))
    ]
    return _texts(rng, "libmultilabel", "d.tsv", "\n".join([*lines, ""]).encode(), texts, labels)


def annif_tsv(rng: Random) -> Case:
    texts, labels = _documents(rng, URIS)
    lines = [f"{text}\t{' '.join(f'<{uri}>' for uri in own)}" for text, own in zip(texts, labels)]
    return _texts(rng, "annif-tsv", "d.tsv", "\n".join([*lines, ""]).encode(), texts, labels)


def plain_lines(rng: Random) -> Case:
    texts, labels = _documents(rng, URIS)
    return _texts(rng, "lines", "d.txt", "\n".join([*texts, ""]).encode(), texts, labels)


def stream(rng: Random) -> Case:
    texts, _ = _documents(rng, LABELS)
    as_json = rng.random() < 0.5
    raw = "".join((json.dumps({"text": text}) if as_json else text) + "\n" for text in texts).encode()
    format = rng.choice((None, "jsonl" if as_json else "lines"))

    def read(folder: Path) -> Any:
        with (folder / "pipe").open("rb") as file:
            return [document.text for document in stream_texts(file, "standard input", format=format)]

    return Case({"pipe": raw}, read, texts)


def annif_folder(rng: Random) -> Case:
    kind = rng.choice(("tsv", "key", "json"))
    texts, labels = _documents(rng, LABELS if kind == "key" else URIS)
    files: dict[str, bytes] = {}
    for i, (text, own) in enumerate(zip(texts, labels)):
        if kind == "json":
            subjects = [{"uri": uri, "label": "x"} for uri in own]
            files[f"c/d{i}.json"] = json.dumps({"text": text, "subjects": subjects}).encode()
            continue
        files[f"c/d{i}.txt"] = text.encode()
        lines = own if kind == "key" else [f"<{uri}>\tname" for uri in own]
        files[f"c/d{i}.{kind}"] = "\n".join([*lines, ""]).encode()

    def read(folder: Path) -> Any:
        data.is_text(folder / "c")
        return data.read_texts(folder / "c")

    return Case(files, read, (texts, labels))


def parquet(rng: Random) -> Case:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    texts, labels = _documents(rng, LABELS)
    file = io.BytesIO()
    parquet.write_table(arrow.table({"text": texts, "labels": labels}), file)
    return _texts(rng, "parquet", "d.parquet", file.getvalue(), texts, labels)


MAKERS: dict[Callable[[Random], Case], float] = {
    xc: 20,
    xc_written: 8,
    split_form: 6,
    npz: 1,
    mapped_npz: 2,
    npy: 2,
    predictions: 8,
    label_filter: 4,
    names: 4,
    jsonl: 9,
    table: 12,
    fasttext: 6,
    libmultilabel: 6,
    annif_tsv: 6,
    annif_folder: 4,
    plain_lines: 4,
    stream: 4,
    parquet: 0.5 if find_spec("pyarrow") else 0,
}
