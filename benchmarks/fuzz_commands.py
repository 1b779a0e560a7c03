"""Random commands in one process, with good and bad options, on a pool of small files and models.

A command ends with exit code 0 and its output, or with exit code 2 and a message. It never shows a traceback,
changes an input, or leaves temporary files or half an output behind.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import exmlds
from exmlds import cli
from exmlds.cli.standard_input import copied_input
from exmlds.data import make_library, read_xc, write_npz, write_xc
from exmlds.errors import ExmldsError
from fuzz_readers import LABELS, WrongAnswer, damage, prose

LIMIT = 120.0
NUMBERS = ["train.txt", "test.txt.gz", "bare.txt", "X.a.npz"]
TEXTS = ["texts.csv", "texts.jsonl", "texts.tsv", "lines.txt", "corpus"]
BAD = [
    "empty.txt",
    "binary.txt",
    "cut.txt.gz",
    "returns.txt",
    "four.txt",
    "damaged.csv",
    "damaged.txt",
    "none.txt",
]
MODELS = ["neighbors", "frequent", "joined", "parts", "texts"]
ODD_TEXTS = [
    "",
    " ",
    "x",
    "0",
    "-1",
    "nan",
    "{",
    '{"text": 1}',
    "é\u2028\x1b[2J",
    "\ud800",
    "a" * 5000,
    "\0",
    "--json",
]
NUMBERS_GIVEN = ["1", "2", "3", "10", "1000"]
ODD_NUMBERS = ["0", "-1", "1.5", "nan", "inf", "1e9", "99999999999999999999", "", "x", "1,3", "1 3", "٣"]


class Done(NamedTuple):
    """What a command did; error is None where Python would not have seen it."""

    code: int
    out: bytes
    err: str
    error: BaseException | None


def prepare(folder: Path) -> None:
    """Write the pool of files and models, in a second copy too, from which a changed one is restored."""
    pool = folder / "pool"
    pool.mkdir()
    rng = Random(0)
    books = make_library(160, random_state=0)
    write_xc(pool / "train.txt", books.rows(slice(0, 120)))
    write_xc(pool / "test.txt.gz", books.rows(slice(120, None)))
    (pool / "label_names.txt").write_text("\n".join(books.label_names or []), encoding="utf-8")
    (pool / "bare.txt").write_bytes((pool / "train.txt").read_bytes().partition(b"\n")[2])
    write_npz(pool / "X.a.npz", books.rows(slice(120, None)))
    texts = [prose(rng) for _ in range(40)]
    labels = [rng.sample(LABELS, rng.randrange(1, 4)) for _ in texts]
    (pool / "texts.csv").write_text(
        "text,labels\n"
        + "".join(f'"{t.replace(chr(34), "")}",{"|".join(own)}\n' for t, own in zip(texts, labels))
    )
    (pool / "texts.jsonl").write_text(
        "".join(json.dumps({"text": t, "labels": own}) + "\n" for t, own in zip(texts, labels))
    )
    (pool / "texts.tsv").write_text("".join(f"{t}\t<http://e.org/{len(t) % 5}>\n" for t in texts))
    (pool / "lines.txt").write_text("".join(f"{t}\n" for t in texts))
    (pool / "corpus").mkdir()
    for i, (t, own) in enumerate(zip(texts[:8], labels)):
        (pool / "corpus" / f"{i}.txt").write_text(t)
        (pool / "corpus" / f"{i}.key").write_text("\n".join(own))
    whole = (pool / "train.txt").read_bytes()
    bad = {
        "empty.txt": b"",
        "binary.txt": rng.randbytes(500),
        "cut.txt.gz": gzip.compress(whole)[:400],
        "returns.txt": whole.replace(b"\n", b"\r"),
        "four.txt": whole.replace(b"\n", b" 7\n", 1),
        "damaged.csv": damage(rng, (pool / "texts.csv").read_bytes()),
        "damaged.txt": damage(rng, whole),
        "allow.txt": b"cooking\nbaking\n",
        "unknown.txt": b"no such label\n",
        "filter.txt": b"0 1\n3 2\n",
        "good.toml": b'method = "feature-neighbors"\n[parameters]\nn_neighbors = 3\n',
        "bad.toml": b"method = 3\n",
        "C.txt": b"".join(b"%d:1\n" % i for i in range(books.Y.shape[1])),
    }
    for name, raw in bad.items():
        (pool / name).write_bytes(raw)
    train = read_xc(pool / "train.txt")
    methods: dict[str, Any] = {
        "neighbors": exmlds.FeatureNeighbors(),
        "frequent": exmlds.MostFrequent(),
        "joined": exmlds.ExMLDS(cost=1.0, shortlist=5, random_state=0),
        "parts": exmlds.ExMLDS1(n_components=5, features="l2", temperature=0.1, l2=1.0, random_state=0),
    }
    for name, method in methods.items():
        method.fit(train.X, train.Y, label_names=train.label_names).save(pool / name)
    exmlds.TextClassifier(model=exmlds.FeatureNeighbors(), keep_rows=True).fit(texts, labels).save(
        pool / "texts"
    )
    ids, scores = methods["neighbors"].predict_topk(train.X[:40], 5)
    exmlds.data.write_predictions(pool / "predictions.txt", ids, scores)
    shutil.copytree(pool, folder / "pristine")


def opened(folder: Path) -> Callable[[int], str]:
    """A function that runs the command of a seed, and returns its outcome."""
    pool, out = folder / "pool", folder / "out"
    out.mkdir(exist_ok=True)
    before = _state(pool)

    def run(seed: int) -> str:
        arguments, data, debug = command(seed, pool, out)
        shutil.rmtree(out)
        out.mkdir()
        os.chdir(out)
        (out / "existing").write_bytes(b"precious")
        try:
            done = _run(arguments, data, debug)
            shown = " ".join(arguments).replace(f"{folder}/", "")[:300]
            try:
                return _judge(arguments, done, out)
            except WrongAnswer as error:
                raise WrongAnswer(f"`{shown}`: {error}") from done.error
        finally:
            if _state(pool) != before:
                shutil.rmtree(pool)
                shutil.copytree(folder / "pristine", pool, copy_function=shutil.copy2)
                raise WrongAnswer(f"an input was changed by {arguments}")

    return run


def _state(folder: Path) -> list[tuple[str, int, bytes]]:
    """The names, sizes and contents of all files; .lock is no content of a model."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return [(str(path), path.stat().st_size, path.read_bytes()[-64:]) for path in files]


def make(seed: int) -> list[str]:
    return command(seed, Path("pool"), Path("out"))[0]


def command(seed: int, pool: Path, out: Path) -> tuple[list[str], bytes, bool]:
    """The arguments of a command, its standard input, and whether its errors are let through."""
    rng = Random(f"commands {seed}")
    arguments = [str(argument) for argument in _arguments(rng, pool, out)]
    for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, 2))):  # what a slip of the hand does
        at = rng.randrange(len(arguments))
        match rng.randrange(4):
            case 0:
                del arguments[at]
            case 1:
                arguments.insert(at, arguments[rng.randrange(len(arguments))])
            case 2:
                arguments[at] = rng.choice([*ODD_TEXTS, *ODD_NUMBERS])
            case 3:
                arguments.insert(
                    at, rng.choice(["--help", "--json", "--", "-", "--unknown", "-k", "--log-level=debug"])
                )
        if not arguments:
            break
    name = rng.choice(NUMBERS + TEXTS[:-1])
    data = rng.choice([b"", b"one text\nanother\n", (pool / name).read_bytes() if pool.is_dir() else b""])
    arguments = [argument.replace("\0", "") for argument in arguments]  # no shell passes it on
    return arguments, data, rng.random() < 0.6


def _arguments(rng: Random, pool: Path, out: Path) -> list[Any]:
    model = pool / rng.choice([*MODELS * 5, "train.txt", "corpus", "none"])
    source = _source(rng, pool, "texts" if model.name == "texts" else "numbers")
    output = out / rng.choice(["new", "new", "new", "new.gz", "new.npz", "existing", "none/new", "."])
    k = ["-k", _number(rng)] * (rng.random() < 0.5)
    by_text = 0.5 if model.name == "texts" else 0.05
    text = ["--text", rng.choice([prose(rng), *ODD_TEXTS])]
    as_json = ["--json"] * (rng.random() < 0.4)
    texts: list[Any] = []
    if rng.random() < 0.15:
        texts = rng.choice(
            [
                ["--text-column", rng.choice(["text", "none", ""])],
                ["--format", rng.choice(["csv", "jsonl", "lines", "fasttext", "annif-folder", "x"])],
                ["--encoding-errors", rng.choice(["replace", "strict", "x"])],
            ]
        )
    some_label = rng.choice(["cooking", "sea", "tax law", "0", "none", ""])
    match rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]:
        case "predict":
            given = text if rng.random() < by_text else [source]
            allow = rng.choice(
                [[], [], [], ["--allow", pool / "allow.txt"], ["--deny", pool / "unknown.txt"]]
            )
            return [
                "predict",
                model,
                *given,
                *k,
                *allow,
                *["-o", output] * (rng.random() < 0.4),
                *as_json,
                *texts,
            ]
        case "evaluate":
            ranker = [model] if rng.random() < 0.7 else ["--predictions", pool / "predictions.txt"]
            if ranker[0] != model and rng.random() < 0.7:
                source = pool / "test.txt.gz"
            more: list[list[Any]] = [
                [],
                ["--filter", pool / "filter.txt"],
                ["--intervals"],
                ["--train", _source(rng, pool, "numbers")],
                ["--propensity", rng.choice(["0.55,1.5", "0,0", "nan,1", "-1,-1", "1", "1e300,1e300"])],
            ]
            return ["evaluate", *ranker, source, *k, *rng.choice(more), *as_json, *texts]
        case "explain":
            given = text if rng.random() < by_text else [source, "--row", _number(rng)]
            label = ["--label", some_label] * (rng.random() < 0.4)
            return ["explain", model, *given, *label, *["-n", _number(rng)] * (rng.random() < 0.3), *as_json]
        case "labels":
            which = rng.choice(
                [[], ["--similar", some_label], ["--search", some_label], ["--typical", some_label]]
            )
            return ["labels", model, *which, *["-n", _number(rng)] * (rng.random() < 0.3), *as_json]
        case "inspect":
            return ["inspect", model, *["--verify"] * (rng.random() < 0.5), *as_json]
        case "info":
            return [
                "info",
                *[rng.choice(["exmlds", "exmlds1", "most-frequent", "none", ""])] * (rng.random() < 0.7),
                *as_json,
            ]
        case "convert":
            return ["convert", source, output, *["--one-based"] * (rng.random() < 0.2), *as_json]
        case "report":
            return [
                "report",
                model,
                source,
                "-o",
                output,
                *k,
                *["--title", rng.choice(ODD_TEXTS)] * (rng.random() < 0.3),
            ]
        case "compare":
            second = pool / rng.choice([*MODELS, "predictions.txt", "none"])
            return [
                "compare",
                model,
                second,
                source,
                *k,
                "--resamples",
                rng.choice(["100", "100", "5"]),
                *as_json,
            ]
        case "train":
            return ["train", _source(rng, pool), "-o", output, *_settings(rng, pool), *as_json, *texts]
        case "tune":
            return [
                "tune",
                _source(rng, pool),
                "-o",
                output,
                "--time-budget",
                "1",
                "--method",
                "feature-neighbors",
            ]
        case _:
            return [
                rng.choice(["demo", "", "none", "--version", "--help", "--log-level", "predict"]),
                *as_json,
                "--rows",
                "1",
            ]


WEIGHTS = {
    "predict": 24,
    "evaluate": 16,
    "explain": 12,
    "labels": 10,
    "inspect": 6,
    "info": 3,
    "convert": 8,
    "report": 3,
    "compare": 5,
    "train": 8,
    "tune": 0.3,
    "other": 2,
}


def _number(rng: Random) -> str:
    return rng.choice(NUMBERS_GIVEN if rng.random() < 0.85 else ODD_NUMBERS)


def _source(rng: Random, pool: Path, kind: str = "any") -> Any:
    likely = NUMBERS if kind == "numbers" else TEXTS if kind == "texts" else NUMBERS + TEXTS
    chosen = rng.choice(
        likely if rng.random() < 0.85 else [*NUMBERS, *TEXTS, *BAD, "-", "bibtex", "neighbors"]
    )
    return chosen if chosen in ("-", "bibtex") else pool / chosen


def _settings(rng: Random, pool: Path) -> list[Any]:
    """The method of `train`, quick ones more often, and its parameters."""
    method = rng.choice(
        ["feature-neighbors"] * 4 + ["most-frequent"] * 4 + ["exmlds1", "exmlds3", "none", ""]
    )
    quick = ["--set", "n_components=4", "--set", "l2=1.0", "--set", "features=l2", "--set", "temperature=0.1"]
    found: list[Any] = ["--method", method, *(quick if method in ("exmlds1", "exmlds3") else [])]
    if rng.random() < 0.3:
        name = rng.choice(
            ["n_neighbors", "n_jobs", "random_state", "threshold", "max_memory", "temperature", "none", ""]
        )
        found += ["--set", f"{name}={_number(rng)}"]
    if rng.random() < 0.3:
        more: list[list[Any]] = [
            ["--config", pool / rng.choice(["good.toml", "bad.toml"])],
            ["--seed", _number(rng)],
            ["--keep-rows"],
            ["--vectorizer", rng.choice(["hashing", "x"])],
            ["--label-cooccurrence", pool / "C.txt"],
            ["--complete-labels", _number(rng)],
            ["--labels", pool / "Y.a.npz"],
        ]
        found += rng.choice(more)
    return found


def _run(arguments: list[str], data: bytes, debug: bool) -> Done:
    """Run a command in this process, with standard streams of its own."""
    saved = sys.argv, sys.stdin, sys.stdout, sys.stderr, warnings.showwarning
    out, err = io.BytesIO(), io.BytesIO()
    logger = logging.getLogger("exmlds")
    handlers, level = logger.handlers, logger.level
    os.environ.pop("EXMLDS_DEBUG", None)
    if debug:
        os.environ["EXMLDS_DEBUG"] = "1"
    error: BaseException | None = None
    code = 0
    sys.argv = ["exmlds", *arguments]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    copied_input.cache_clear()  # in a process of its own, no command has read standard input before
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.simplefilter("error", RuntimeWarning)  # a number went wrong unnoticed
            cli.main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException as raised:
        error, code = raised, 2
    finally:
        streams = sys.stdout, sys.stderr
        sys.argv, sys.stdin, sys.stdout, sys.stderr, warnings.showwarning = saved
        logger.handlers, logger.level = handlers, level
        for stream in streams:
            stream.flush()
        done = Done(code, out.getvalue(), err.getvalue().decode("utf-8", "replace"), error)
        for copy in Path(tempfile.gettempdir()).glob("exmlds-*"):  # standard input, until the process ends
            if (copy / "standard-input").exists():
                shutil.rmtree(copy)
    return done


def _judge(arguments: list[str], done: Done, out: Path) -> str:
    if done.error is not None and not _is_own(done.error):
        raise WrongAnswer(f"{type(done.error).__name__} from {_origin(done.error)}: {done.error}"[:400])
    is_partial = done.code == 1 and "lines could not be read and got no labels" in done.err
    if (
        (done.code not in (0, 2) and not is_partial)
        or "Traceback" in done.err
        or "internal error" in done.err
    ):
        raise WrongAnswer(f"exit code {done.code}: {done.err[:300]}")
    left = sorted(path.name for path in out.iterdir() if path.name != "existing")
    partial = [name for name in left if name.startswith(".") or name.endswith(".partial")]
    if partial:
        raise WrongAnswer(f"{partial[0]} is left behind")
    if done.code == 2:
        if done.error is None and not done.err.strip():
            raise WrongAnswer("exit code 2 without a message")
        existing = out / "existing"
        if left or not existing.is_file() or existing.read_bytes() != b"precious":
            raise WrongAnswer(f"an output of a failed command stays: {left or 'existing'}")
        return "refused"
    has_output = any(argument.startswith(("-o", "--output")) for argument in arguments)
    if "--help" in arguments or has_output:
        return "done"
    if _asks_for_json(arguments):
        _check_json(done.out.decode(), lines=arguments[0] == "predict")
    if not done.out and arguments[0] != "predict":  # there may be no line of standard input
        raise WrongAnswer("exit code 0, and nothing was printed")
    return "done"


def _asks_for_json(arguments: list[str]) -> bool:
    """Whether --json is an option: after `--` it is a file name, after an option perhaps its value."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return any(option == "--json" and not before.startswith("-") for before, option in pairwise(options))


def _check_json(text: str, lines: bool) -> None:
    def refuse(constant: str) -> None:
        raise WrongAnswer(f"{constant} is not JSON")

    for document in text.splitlines() if lines else [text]:
        try:
            json.loads(document, parse_constant=refuse)
        except ValueError as error:
            raise WrongAnswer(f"the output is not JSON ({error}): {document[:100]!r}") from error


def _is_own(error: BaseException) -> bool:
    """Whether the package, or the operating system about a named file, has refused the input on purpose."""
    if isinstance(error, ExmldsError):
        return True
    if isinstance(error, OSError):
        return error.filename is not None
    return isinstance(error, ValueError) and "/exmlds/" in _origin(error)


def _origin(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "nowhere"
