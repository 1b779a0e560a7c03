"""The journal of a model that grows: what was acknowledged is there, whatever happens."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from importlib import import_module
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import exmlds
from exmlds import DataWarning, ModelError, MostFrequent, TextClassifier
from exmlds.storage import journal, lock, model_folder, tree

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
sys.path.insert(0, str(HERE))
note_counter: Any = import_module("note_counter")

posix = pytest.mark.skipif(os.name != "posix", reason="locks, limits and signals of POSIX")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder without a journal."""
    monkeypatch.setattr(journal, "_PAUSE", 0.0)
    note_counter.fitted().save(tmp_path / "model")
    return tmp_path / "model"


def journal_of(folder: Path) -> Path:
    (found,) = folder.glob("journal-*.log")
    return found


def grown(folder: Path, first: int, last: int) -> Any:
    """Make changes to a model on disk; returns the model, closed."""
    with exmlds.load(folder, writable=True) as model:
        for number in range(first, last):
            note_counter.change(model, number)
    return model


def in_memory(n: int) -> Any:
    model = note_counter.fitted()
    for number in range(n):
        note_counter.change(model, number)
    return model


def test_changes_are_replayed(path: Path) -> None:
    grown(path, 0, 5)
    grown(path, 5, 9)
    assert exmlds.load(path).state() == in_memory(9).state()
    assert len(list(path.glob("arrays-*.bin"))) == 1


def test_a_reader_sees_each_change_at_once(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        for number in range(9):
            note_counter.change(model, number)
            assert exmlds.load(path).state() == model.state()


def test_a_model_without_changes_has_no_journal(path: Path) -> None:
    exmlds.load(path, writable=True).close()
    assert not list(path.glob("journal-*"))


def test_a_model_that_is_not_open_grows_in_memory_alone(path: Path) -> None:
    model = exmlds.load(path)
    model.add(0, ["new"])
    assert len(model.notes_) == 5
    assert exmlds.load(path).state() == note_counter.fitted().state()
    with pytest.raises(ModelError, match=r"not open for writing: load it with exmlds.load\(path, writable"):
        model.compact()


def test_a_closed_model_refuses_changes_and_stays_as_it_is(path: Path) -> None:
    model = grown(path, 0, 2)
    before = model.state()
    with pytest.raises(ModelError, match="no longer open for writing; load it again"):
        model.add(0, ["late"])
    assert exmlds.load(path).state() == model.state() == before
    model.save(path)  # a closed model is saved as any other
    assert exmlds.load(path).state() == before


def test_a_folder_in_place_of_the_open_one_is_not_written_to(path: Path, tmp_path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        os.rename(path, tmp_path / "before")
        shutil.copytree(tmp_path / "before", path)
        n = len(model.notes_)
        with pytest.raises(ModelError, match="was replaced by another folder"):
            note_counter.change(model, 0)
        assert len(model.notes_) == n
    assert len(exmlds.load(path).notes_) == n


def test_copies_do_not_write_to_the_folder(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        for other in (copy(model), pickle.loads(pickle.dumps(model))):
            other.add(0, ["only here"])
        assert clone(model)._journal is None
        assert not list(path.glob("journal-*"))
        note_counter.change(model, 0)
    assert exmlds.load(path).state() == in_memory(1).state()


def test_a_fit_of_an_open_model_is_refused(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        before = model.state()
        with pytest.raises(ValueError, match="open for writing, and a fit is not a change"):
            model.fit(np.ones((2, 2)), [[0], [1]])
        assert model.state() == before
    model.fit(np.ones((2, 2)), [[0], [1]])  # after `close`, the folder is another model's
    model.add(0, ["new"])
    assert exmlds.load(path).state() == before


def test_a_change_that_cannot_be_stored_changes_nothing(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        before = model.state()
        with pytest.raises(ModelError, match="notes cannot be saved: it holds objects other than strings"):
            model.add(0, [7])
        assert model.state() == before
        note_counter.change(model, 0)
    assert exmlds.load(path).state() == in_memory(1).state()


def test_a_failed_change_leaves_inner_models_as_they_were() -> None:
    model = note_counter.fitted()
    model.inner_ = note_counter.fitted()
    with suppress(KeyboardInterrupt), model._all_or_nothing():
        model.inner_.add(0, ["x"])
        raise KeyboardInterrupt
    assert model.inner_.state() == note_counter.fitted().state()


# Torn tails and damage.


def test_a_tail_that_is_torn_anywhere_is_left_out_and_cut(path: Path) -> None:
    grown(path, 0, 2)
    whole = journal_of(path).stat().st_size
    grown(path, 2, 3)
    raw, before, after = journal_of(path).read_bytes(), in_memory(2), in_memory(3)
    assert len(raw) - whole > 100
    for size in range(whole, len(raw) + 1):
        journal_of(path).write_bytes(raw[:size])
        if size in (whole, len(raw)):
            assert exmlds.load(path).state() == (before if size == whole else after).state()
            continue
        with pytest.warns(DataWarning, match=f"the last {size - whole} bytes are an incomplete change"):
            assert exmlds.load(path).state() == before.state()
        assert journal_of(path).stat().st_size == size, "a reader writes nothing"
        with pytest.warns(DataWarning, match="incomplete change"):
            model = exmlds.load(path, writable=True)
        with model:
            assert journal_of(path).stat().st_size == whole
            if size % 16 == 0:
                note_counter.change(model, 2)
                assert exmlds.load(path).state() == after.state()


@pytest.mark.parametrize("filler", [b"\0", b"\xff"])
def test_a_tail_that_was_never_filled_is_left_out(path: Path, filler: bytes) -> None:
    """A power failure may leave the size of an append without its bytes."""
    grown(path, 0, 2)
    whole = journal_of(path).stat().st_size
    grown(path, 2, 3)
    raw = journal_of(path).read_bytes()
    for kept in (0, 3, 28, 60):
        size = len(raw) - whole - kept
        journal_of(path).write_bytes(raw[: whole + kept] + filler * size)
        with pytest.warns(DataWarning, match=f"the last {len(raw) - whole:,} bytes"):
            assert exmlds.load(path).state() == in_memory(2).state()


def test_any_flipped_bit_before_the_last_record_is_damage(path: Path) -> None:
    grown(path, 0, 3)
    last = journal_of(path).stat().st_size
    grown(path, 3, 4)
    raw = journal_of(path).read_bytes()
    rng = np.random.default_rng(0)
    for bit in [*range(0, 8 * 60, 7), *rng.integers(8 * last, size=150).tolist()]:
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        journal_of(path).write_bytes(damaged)
        with pytest.raises(ModelError, match=r"journal-\w+.log (is damaged|was written by a newer)"):
            exmlds.load(path)
        with pytest.raises(ModelError):
            exmlds.load(path, writable=True)
        assert journal_of(path).read_bytes() == damaged, "damage is not cut off"


def test_a_damaged_record_is_named(path: Path) -> None:
    grown(path, 0, 4)
    raw = bytearray(journal_of(path).read_bytes())
    raw[28 + 28 + 5] ^= 1
    journal_of(path).write_bytes(raw)
    with pytest.raises(ModelError, match="record 1 does not match its checksum, and others follow it. Copy"):
        exmlds.load(path)


def test_a_journal_of_another_generation_is_refused(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    grown(tmp_path / "copy", 0, 2)
    raw = journal_of(tmp_path / "copy").read_bytes()
    note_counter.fitted().save(path)
    generation = model_folder.generation_of(model_folder.read_manifest(path))
    journal.path_of(path, generation).write_bytes(raw)
    with pytest.raises(ModelError, match="belongs to another generation"):
        exmlds.load(path)
    journal.path_of(path, generation).unlink()
    (path / journal_of(tmp_path / "copy").name).write_bytes(raw)
    assert exmlds.load(path).state() == note_counter.fitted().state(), "a file of another name is not read"
    exmlds.load(path).save(path)
    assert not list(path.glob("journal-*")), "it is removed by the next save"


def test_records_of_another_generation_are_not_taken_for_records(path: Path) -> None:
    """Bytes of one journal within another are neither replayed nor called damage."""
    grown(path, 0, 2)
    other = journal_of(path).read_bytes()
    with exmlds.load(path, writable=True) as model:
        model.compact()
    grown(path, 2, 3)
    whole = journal_of(path).read_bytes()
    journal_of(path).write_bytes(whole + b"torn" + other)
    with pytest.warns(DataWarning, match="incomplete change"):
        assert exmlds.load(path).state() == in_memory(3).state()


def test_a_newer_journal_is_refused(path: Path) -> None:
    grown(path, 0, 1)
    generation = model_folder.generation_of(model_folder.read_manifest(path))
    raw = journal._header(generation.encode(), journal.FORMAT + 1) + journal_of(path).read_bytes()[28:]
    journal_of(path).write_bytes(raw)
    with pytest.raises(ModelError, match="newer exmlds .journal format 2; this one reads up to 1"):
        exmlds.load(path)


def with_record(folder: Path, payload: bytes, n_plain: int, n_stored: int | None = None) -> None:
    """Make a journal of one record with right checksums."""
    generation = model_folder.generation_of(model_folder.read_manifest(folder))
    crc = journal.zlib.crc32(payload)
    sizes = (len(payload) if n_stored is None else n_stored, n_plain, crc)
    header = journal._header(generation.encode())
    own = journal._header_crc(*sizes, len(header), generation)
    record = journal._RECORD.pack(journal._MARK, *sizes, own) + payload
    journal.path_of(folder, generation).write_bytes(header + record)


def test_crafted_records_are_refused(path: Path) -> None:
    good = tree.dumps(note_counter.NotesAdded(np.array([1, 0, 0]), np.array(["x"], object)), "change")
    with_record(path, good, len(good))
    assert exmlds.load(path).notes_[-1] == "x"
    wrong_counts = note_counter.NotesAdded(np.array([2, 0, 0]), np.array(["x"], object))
    beyond = note_counter.NotesRemoved(np.array([1, 0, 0]), np.array([4]))
    bomb = journal.zlib.compress(bytes(10**8))
    for payload, n_plain, message in [
        (b"", 0, "longer than its record"),
        (b"\xff" * 8, 8, "longer than its record"),
        (b"\xff" * 20, 20, "longer than its record"),
        (good[:8] + b"[" + good[9:], len(good), "JSONDecodeError"),
        (tree.dumps([1], "change"), len(tree.dumps([1], "change")), "not a change of a model"),
        (tree.dumps(wrong_counts, "change"), None, "the counts are not those of the rows"),
        (tree.dumps(beyond, "change"), None, "removed rows"),
        (good[:-3], None, "not within the file"),
        (bomb, 10**8, "compressed too much"),
        (bomb, 2**62, "compressed too much"),
        (bomb, len(bomb) + 1, "another size"),
        (good[::-1], len(good) + 1, "cannot be decompressed"),
    ]:
        with_record(path, payload, len(payload) if n_plain is None else n_plain)
        with pytest.raises(ModelError, match=message):
            exmlds.load(path)


def test_records_with_one_crafted_value_are_refused_or_harmless(path: Path) -> None:
    crafted, rng = import_module("crafted"), np.random.default_rng(0)
    refused = 0
    for case in range(300):
        kind = (note_counter.NotesAdded, note_counter.NotesRemoved)[case % 2]
        rows = np.array(["x"], object) if case % 2 == 0 else np.array([0])
        raw = tree.dumps(kind(np.array([1, 0, 0]), rows), "change")
        start = 8 + int.from_bytes(raw[:8], "little")
        head = json.loads(raw[8:start])
        holders = list(dicts_in(head))
        holder = holders[rng.integers(len(holders))]
        holder[list(holder)[rng.integers(len(holder))]] = crafted.VALUES[rng.integers(len(crafted.VALUES))]
        text = json.dumps(head).encode()
        payload = len(text).to_bytes(8, "little") + text + raw[start:]
        with_record(path, payload, len(payload))
        try:
            note_counter.facts(exmlds.load(path))
        except ModelError:
            refused += 1
    assert refused > 200


def dicts_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from dicts_in(part)


@posix
def test_a_crafted_length_takes_no_memory(path: Path) -> None:
    import resource

    with_record(path, b"x", 2**62, n_stored=2**62)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, limits[1]))
    try:
        with pytest.warns(DataWarning, match="the last 29 bytes"):
            exmlds.load(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_model_that_does_not_grow_refuses_a_journal(path: Path, tmp_path: Path) -> None:
    MostFrequent().fit(np.ones((4, 2)), [[0], [1], [2], [0]]).save(tmp_path / "other")
    good = tree.dumps(note_counter.NotesAdded(np.array([1, 0, 0]), np.array(["x"], object)), "change")
    with_record(tmp_path / "other", good, len(good))
    with pytest.raises(ModelError, match="cannot be used: MostFrequent takes no change of the kind"):
        exmlds.load(tmp_path / "other")


@posix
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_journal_that_is_a_link_or_a_pipe_is_refused(path: Path, tmp_path: Path, kind: str) -> None:
    grown(path, 0, 1)
    own = journal_of(path)
    shutil.move(own, tmp_path / "precious")
    before = (tmp_path / "precious").read_bytes()
    own.symlink_to(tmp_path / "precious") if kind == "link" else os.mkfifo(own)
    for writable in (False, True):
        with pytest.raises(ModelError, match="is a link" if kind == "link" else "is not a regular file"):
            exmlds.load(path, writable=writable)
    assert (tmp_path / "precious").read_bytes() == before


# Saves and compactions.


def test_a_save_to_the_own_folder_begins_a_new_generation(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        for number in range(8):
            note_counter.change(model, number)
            if number in (3, 5):
                old = model_folder.read_manifest(path)["file"]["name"]
                model.save(os.path.relpath(path))
                assert [file.name for file in path.glob("arrays-*")] != [old]
                assert not list(path.glob("journal-*"))
            assert exmlds.load(path).state() == in_memory(number + 1).state()
    assert len(list(path.glob("journal-*"))) == 1


def test_a_save_to_another_folder_has_all_changes_and_no_journal(path: Path, tmp_path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        note_counter.change(model, 0)
        model.save(tmp_path / "other")
        assert not list((tmp_path / "other").glob("journal-*"))
        assert exmlds.load(tmp_path / "other").state() == in_memory(1).state()
        note_counter.change(model, 1)
    assert exmlds.load(path).state() == in_memory(2).state()
    assert exmlds.load(tmp_path / "other").state() == in_memory(1).state()


def test_a_refit_of_an_open_model_begins_a_new_generation(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        note_counter.change(model, 0)
        model._become(in_memory(6))
        assert exmlds.load(path).state() == model.state() == in_memory(6).state()
        note_counter.change(model, 6)
    assert exmlds.load(path).state() == in_memory(7).state()


def test_every_model_of_an_older_version_can_be_opened_and_compacted(tmp_path: Path) -> None:
    shutil.unpack_archive(HERE / "saved-0.1.0.zip", tmp_path)
    for folder in (each for each in tmp_path.iterdir() if each.is_dir()):
        with exmlds.load(folder, writable=True) as model:
            queries = list(model.texts_) if isinstance(model, TextClassifier) else None
            rows = np.ones((3, model.n_features_in_), np.float32) if queries is None else queries
            expected = model.predict_topk(rows, 2)
            with pytest.raises(ValueError, match="open for writing, and a fit is not a change"):
                model.fit(rows, [["a"]] * len(rows))
            model.compact(purge=True)
        np.testing.assert_array_equal(exmlds.load(folder).predict_topk(rows, 2), expected)


def test_purged_rows_leave_no_byte(path: Path) -> None:
    secret = "an apology to Ms. Lund"
    with exmlds.load(path, writable=True) as model:
        model.add(1, [secret])
        model.save(path)
        model.remove([4])
        model.compact()
        assert any(secret.encode() in file.read_bytes() for file in path.iterdir()), "it is only marked"
        model.add(0, ["kept"])
        leftovers = [
            "arrays-0123456789ab.bin",
            "journal-0123456789ab.log",
            ".README.md.x.partial",
            ".journal",
        ]
        for name in leftovers:
            (path / name).write_text(secret)
        model.compact(purge=True)
        assert sorted(file.name.partition("-")[0] for file in path.iterdir()) == [
            *(".lock", "README.md", "arrays", "manifest.json")
        ]
        assert not any(secret.encode() in file.read_bytes() for file in path.iterdir())
        assert "| training rows | 5 |" in (path / "README.md").read_text()
        model.add(2, ["after"])
    assert exmlds.load(path).notes_.tolist()[4:] == ["kept", "after"]


def test_a_purge_that_cannot_remove_a_file_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = exmlds.load(path, writable=True)
    model.add(1, ["x"]).remove([0])
    before = model.state()
    monkeypatch.setattr(os, "unlink", failing("journal-"))
    with pytest.raises(ModelError, match="cannot be written"):
        model.compact(purge=True)
    monkeypatch.undo()
    assert model.state() == before
    with pytest.raises(ModelError, match="no longer open"):  # the folder is compacted, this model is not
        model.add(0, ["lost?"])
    assert "row 0" not in exmlds.load(path).notes_.tolist()


def failing(part: str) -> Callable[..., None]:
    real = os.unlink

    def unlink(file: Any, *args: Any, **options: Any) -> None:
        if part in str(file):
            raise PermissionError(13, "Permission denied")
        real(file, *args, **options)

    return unlink


def test_a_failed_compaction_keeps_journal_and_model(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with exmlds.load(path, writable=True) as model:
        for number in range(4):
            note_counter.change(model, number)
        before = model.state()

        def broken(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(model_folder.os, "replace", broken)
        with pytest.raises(ModelError, match="No space left"):
            model.compact(purge=True)
        monkeypatch.undo()
        assert model.state() == before
        note_counter.change(model, 4)
    assert exmlds.load(path).state() == in_memory(5).state()
    assert len(list(path.glob("arrays-*"))) == 1


@posix
def test_a_full_disk_leaves_memory_and_disk_as_before(path: Path) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with exmlds.load(path, writable=True) as model:
        for first in (True, False):
            raw = b"" if first else journal_of(path).read_bytes()
            before = model.state()
            for room in (1, 40, 200):
                resource.setrlimit(resource.RLIMIT_FSIZE, (len(raw) + room, limits[1]))
                try:
                    with pytest.raises(ModelError, match=r"cannot be written \(File too large\)"):
                        model.add(1, [os.urandom(5000).hex()])
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                assert model.state() == before
                assert exmlds.load(path).state() == before
                assert not raw or journal_of(path).read_bytes() == raw
            model.add(1, ["fits"])
            assert exmlds.load(path).state() == model.state()


def test_an_interruption_leaves_memory_and_disk_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it comes after the record was written."""
    with exmlds.load(path, writable=True) as model:
        note_counter.change(model, 0)
        real = journal.Journal.append

        def interrupted(*args: Any) -> None:
            real(*args)
            raise KeyboardInterrupt

        monkeypatch.setattr(journal.Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.add(2, ["a long note that was never acknowledged " * 9])
        monkeypatch.undo()
        assert model.state() == in_memory(1).state()
        note_counter.change(model, 1)
    assert exmlds.load(path).state() == in_memory(2).state()


def exmlds_command(*arguments: Any) -> Any:
    """What a command prints as JSON."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "exmlds",
            *map(str, arguments),
            "--method",
            "note_counter:NoteCounter",
            "--json",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_commands_show_and_compact_the_journal(path: Path) -> None:
    expected = grown(path, 0, 5)
    size = journal_of(path).stat().st_size
    shown = exmlds_command("inspect", path)
    (arrays,) = path.glob("arrays-*")
    assert shown["generation"] in arrays.name
    assert (shown["journal records"], shown["journal bytes"]) == (5, size)
    assert shown["training rows"] == expected.n_samples_fit_
    compacted = exmlds_command("compact", path, "--purge")
    (arrays,) = path.glob("arrays-*")
    assert compacted == {"generation": arrays.name[7:-4], "changes": 5, "bytes": arrays.stat().st_size}
    assert note_counter.facts(exmlds.load(path)) == note_counter.facts(expected)
    assert not exmlds.load(path).removed_.any()
    assert not list(path.glob("journal-*"))


# Several processes.

OPEN = """
import sys
sys.path.insert(0, {here!r})
import exmlds, note_counter
model = exmlds.load(sys.argv[1], writable=True)
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the model open until it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN.format(here=str(HERE)), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "open\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@posix
def test_a_second_writer_waits_and_is_refused(
    path: Path, other_writer: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOCK_SECONDS", 0.2)
    for write in (lambda: exmlds.load(path, writable=True), lambda: note_counter.fitted().save(path)):
        with (
            pytest.warns(DataWarning, match="has it open for writing; waiting at most 0.2 seconds"),
            pytest.raises(ModelError, match="locked by another process.*open for writing.*Wait for it"),
        ):
            write()
    assert exmlds.load(path).state() == note_counter.fitted().state(), "a reader is not disturbed"
    other_writer.kill()
    other_writer.wait()
    assert grown(path, 0, 1).state() == in_memory(1).state(), "the lock ends with its process"


@posix
def test_the_same_process_is_refused_at_once(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        for write in (lambda: exmlds.load(path, writable=True), lambda: note_counter.fitted().save(path)):
            with pytest.raises(ModelError, match="is open for writing in this process"):
                write()
        note_counter.change(model, 0)
    assert grown(path, 1, 2).state() == in_memory(2).state()


@posix
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_write(path: Path) -> None:
    with exmlds.load(path, writable=True) as model:
        note_counter.change(model, 0)
        child = os.fork()
        if not child:
            try:
                model.add(0, ["from the child"])
            except ModelError:
                model.close()
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        note_counter.change(model, 1)
        with pytest.raises(ModelError, match="in this process"):  # the child has not unlocked it
            exmlds.load(path, writable=True)
    assert exmlds.load(path).state() == in_memory(2).state()


def test_a_model_that_is_dropped_is_not_left_locked(path: Path) -> None:
    model = exmlds.load(path, writable=True)
    model._journal.lock.file.close()  # as the garbage collector does, without a ResourceWarning
    assert grown(path, 0, 1).state() == in_memory(1).state()


def test_a_model_that_cannot_be_loaded_is_not_left_locked(path: Path) -> None:
    grown(path, 0, 3)
    raw = bytearray(journal_of(path).read_bytes())
    raw[40] ^= 1
    journal_of(path).write_bytes(raw)
    with pytest.raises(ModelError, match="is damaged"):
        exmlds.load(path, writable=True)
    note_counter.fitted().save(path)
    assert exmlds.load(path).state() == note_counter.fitted().state()


def test_no_model_is_made_by_opening_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        with pytest.raises(ModelError):
            exmlds.load(tmp_path / name, writable=True)
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


READER = """
import sys, warnings
warnings.simplefilter("error")
sys.path.insert(0, {here!r})
import exmlds, note_counter
expected, n, last = note_counter.fitted(), 0, note_counter.facts(note_counter.fitted())
while n < {n}:
    found = note_counter.facts(exmlds.load(sys.argv[1]))
    while found != last:
        note_counter.change(expected, n)
        n, last = n + 1, note_counter.facts(expected)
print("fine")
"""


@posix
def test_a_reader_sees_whole_changes_in_their_order(path: Path) -> None:
    """It loads all the time while another process changes, compacts and saves."""
    n = 60
    reader = subprocess.Popen(
        [sys.executable, "-c", READER.format(here=str(HERE), n=n), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with exmlds.load(path, writable=True) as model:
        for number in range(n):
            note_counter.change(model, number)
            if number % 10 == 9:
                model.compact(purge=number % 20 == 9)
    try:
        out, errors = reader.communicate(timeout=60)
    finally:
        reader.kill()
    assert out == "fine\n", errors


# Sizes.


def test_many_small_changes_take_proportional_space(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # 10,000 of them take long on some disks
    sizes = []
    with exmlds.load(path, writable=True) as model:
        monkeypatch.setattr(type(model), "_apply_change", lambda self, change: None)
        for number in range(10_000):
            note_counter.change(model, 4 * number)
            if number in (999, 9_999):
                sizes.append(journal_of(path).stat().st_size)
    assert sizes[1] < 10.2 * sizes[0] < 10_000 * 350
    contents = journal.read(path, model._journal.generation)
    assert sum(change.counts.sum() for change in contents.changes()) == 10_000


def test_a_large_change_is_stored_compressed_where_that_helps(path: Path) -> None:
    rng = np.random.default_rng(0)
    plain, random = rng.integers(9, size=200_000), rng.random(200_000)
    state = {"n": 1}
    for array, smaller in ((plain, True), (random, False)):
        raw = tree.dumps({**state, "array": array}, "change")
        packed = journal._packed(raw)
        assert (len(packed) < len(raw) / 2) is smaller
        assert journal._unpacked(packed, len(raw)) == raw
    for n in (10**6, 10**7):  # too much memory for too few bytes in the second case
        zeros = tree.dumps({"array": np.zeros(n)}, "change")
        packed = journal._packed(zeros)
        assert (len(packed) < 10**5) is (n == 10**6)
        assert journal._unpacked(packed, len(zeros)) == zeros


# Power failures and kills.


class Disk:
    """What has reached the disk, by the writes, syncs, renames and removals of the storage modules.

    operations : ("link", name, file), ("data", file, bytes), ("write", file, offset, bytes),
        ("cut", file, size), ("replace", old, new), ("unlink", name), ("sync",), ("done",)
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.operations = folder, list[Any]()
        self.numbers = count()
        self.files: dict[int, int] = {}  # by inode, which another file may get after a removal
        self.names = {each.name: self._file(each.stat().st_ino) for each in folder.iterdir()}
        self.data = {file: (folder / name).read_bytes() for name, file in self.names.items()}
        self.calls = {
            name: getattr(os, name) for name in ("fsync", "write", "ftruncate", "replace", "unlink")
        }
        for name in self.calls:
            monkeypatch.setattr(os, name, getattr(self, f"_{name}"))

    def _file(self, inode: int) -> int:
        """The number of a file."""
        return self.files.setdefault(inode, next(self.numbers))

    def _name(self, handle: int) -> str | None:
        """The name of an open file in the folder; "" is the folder itself."""
        where = Path(os.readlink(f"/proc/self/fd/{handle}"))
        return "" if where == self.folder else where.name if where.parent == self.folder else None

    def _fsync(self, handle: int) -> None:
        self.calls["fsync"](handle)
        name, inode = self._name(handle), os.fstat(handle).st_ino
        if name == "":
            self.operations.append(("sync",))
        elif name is not None:
            if inode not in self.files:
                self.operations.append(("link", name, self._file(inode)))
            self.operations.append(("data", self._file(inode), (self.folder / name).read_bytes()))

    def _write(self, handle: int, data: Any) -> int:
        position = os.lseek(handle, 0, os.SEEK_CUR) if self._name(handle) else 0
        if self._name(handle):
            self.operations.append(("write", self._file(os.fstat(handle).st_ino), position, bytes(data)))
        return self.calls["write"](handle, data)

    def _ftruncate(self, handle: int, size: int) -> None:
        self.calls["ftruncate"](handle, size)
        self.operations.append(("cut", self._file(os.fstat(handle).st_ino), size))

    def _replace(self, old: Any, new: Any) -> None:
        if os.path.exists(new):
            self.files.pop(os.stat(new).st_ino)
        self.calls["replace"](old, new)
        self.operations.append(("replace", Path(old).name, Path(new).name))

    def _unlink(self, path: Any, **options: Any) -> None:
        if os.path.exists(path):
            self.files.pop(os.stat(path).st_ino)
        self.calls["unlink"](path, **options)
        self.operations.append(("unlink", Path(path).name))

    def states(self) -> Iterator[tuple[int, dict[str, bytes]]]:
        """The folders that a power failure may leave, with the number of operations before it.

        Names since the last sync of the folder may be there or not, each by itself; of bytes since the last
        sync of a file, none, a part or all, or zeros in their place.
        """
        for n in range(len(self.operations) + 1):
            done = self.operations[:n]
            synced = max((i for i, each in enumerate(done) if each[0] == "sync"), default=-1)
            pending = [
                i for i, each in enumerate(done) if each[0] in ("link", "replace", "unlink") and i > synced
            ]
            for chosen in product((True, False), repeat=len(pending)):
                lost = {i for i, is_done in zip(pending, chosen) if not is_done}
                names = self._names(each for i, each in enumerate(done) if i not in lost)
                for share in (0.0, 0.5, 1.0, -1.0):
                    data = self._data(done, share)
                    yield n, {name: data.get(file, b"") for name, file in names.items()}

    def _names(self, operations: Any) -> dict[str, int]:
        names = dict(self.names)
        for kind, *args in operations:
            if kind == "link":
                names[args[0]] = args[1]
            elif kind == "replace" and args[0] in names:
                names[args[1]] = names.pop(args[0])
            elif kind == "unlink":
                names.pop(args[0], None)
        return names

    def _data(self, operations: list[Any], share: float) -> dict[int, bytes]:
        """The content of each file; share : of the bytes written since its last sync; −1: zeros."""
        data = dict(self.data)
        last = {args[0]: i for i, (kind, *args) in enumerate(operations) if kind == "data"}
        for i, (kind, *args) in enumerate(operations):
            if kind == "data":
                data[args[0]] = args[1]
            elif i > last.get(args[0] if args else None, -1) and share:
                if kind == "write":
                    size = len(args[2])
                    written = args[2][: int(share * size)] if share > 0 else bytes(size)
                    data[args[0]] = data[args[0]][: args[1]] + written
                elif kind == "cut":
                    data[args[0]] = data[args[0]][: args[1]]
        return data


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds files by their descriptors in /proc")
@pytest.mark.filterwarnings("ignore:.*incomplete change:exmlds.DataWarning")
def test_a_power_failure_at_any_moment_loses_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        disk = Disk(path, patch)
        number, done = 0, [note_counter.facts(note_counter.fitted())]
        with exmlds.load(path, writable=True) as model:
            for step in "cccscxcccpcs":
                if step == "c":
                    note_counter.change(model, number)
                    number += 1
                else:
                    model.save(path) if step == "s" else model.compact(purge=step == "p")
                done.append(note_counter.facts(model))
                disk.operations.append(("done",))
    kinds = {each[0] for each in disk.operations}
    assert kinds == {"link", "data", "write", "cut", "replace", "unlink", "sync", "done"}
    seen = set()
    for n, files in disk.states():
        n_done = sum(each[0] == "done" for each in disk.operations[:n])
        key = (n_done, *sorted(files.items()))
        if key in seen:
            continue
        seen.add(key)
        (tmp_path / "left").mkdir()
        for name, content in files.items():
            (tmp_path / "left" / name).write_bytes(content)
        found = note_counter.facts(exmlds.load(tmp_path / "left"))
        assert found in done[n_done : n_done + 2], f"after {n} operations: {disk.operations[n - 1][:2]}"
        shutil.rmtree(tmp_path / "left")
    assert len(seen) > 100


@posix
@pytest.mark.slow
@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the tests run without the benchmarks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/crash.py` does the same a thousand times."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    crash = import_module("crash")
    counts = crash.crash(crash.SUBJECTS["NoteCounter"], tmp_path, kills=30, seed=0)
    assert counts["kills"] == 30
    assert counts["acknowledged changes"] > 30
