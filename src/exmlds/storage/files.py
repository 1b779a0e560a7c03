"""Reading files and replacing them atomically, with error messages that say what to do."""

from __future__ import annotations

import atexit
import errno
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, did_you_mean

PathLike = str | os.PathLike[str]

_unfinished: set[Path] = set()  # the temporary files of `replacing`


@contextmanager
def reading(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; gzip is detected by content, not by name."""
    path = Path(path)
    try:
        with path.open("rb") as raw:
            if raw.read(2) == b"\x1f\x8b":
                raw.seek(0)
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield io.BufferedReader(unpacked, 1 << 17)
            else:
                raw.seek(0)
                yield raw
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.{near_path(path)}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name a file in it.{listing(path)}") from None
    except PermissionError:
        raise DataError(f"{path}: no permission to read it.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged or truncated gzip file ({error}); fetch it again.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}).") from None


def bytes_read(file: IO[bytes]) -> int:
    """The bytes of the file on disk that a handle of `reading` has consumed."""
    unpacked = getattr(file, "raw", None)
    packed: Any = unpacked.fileobj if isinstance(unpacked, gzip.GzipFile) else file
    return packed.tell()


def near_path(path: Path, is_candidate: Callable[[Path], bool] = Path.exists) -> str:
    """The path in the same folder that is nearest to a missing one, as the last sentence of a message."""
    with suppress(OSError):
        names = [entry.name for entry in path.parent.iterdir() if is_candidate(entry)]
        return did_you_mean(path.name, names, path.with_name)
    return ""


def listing(path: Path) -> str:
    """The first names in a folder, as the last sentence of a message."""
    with suppress(OSError):
        names = sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir())[:8]
        if names:
            return f" It holds: {', '.join(names)}."
    return ""


def sync(file: IO[bytes]) -> None:
    """Return when what was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Return when the names of the files in a folder are on the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Some file systems cannot sync a folder.
            raise
    finally:
        os.close(handle)


@contextmanager
def replacing(path: PathLike, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name, and rename it on success; gzipped if the name ends in .gz.

    mode : the permissions of the file; None is those of a new file
    Links are followed. Pipes and devices are written to directly.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with _naming(path), path.open("wb") as device:
            yield device
        return
    # The name is known before the file exists: a signal may arrive as soon as it does.
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
    _unfinished.add(temporary)
    try:
        with _naming(path), _create(temporary, path) as raw:
            if path.suffix == ".gz":
                # With mtime=0 equal content gives equal files.
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
            sync(raw)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask if mode is None else mode)
        os.replace(temporary, path)
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name a file.") from None
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _create(temporary: Path, path: Path) -> IO[bytes]:
    """A new file that only its owner may read, for what is to become the file at `path`."""
    try:
        return os.fdopen(
            os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600), "wb"
        )
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}).") from None


@atexit.register
def _remove_unfinished() -> None:
    """Remove the files whose writers were interrupted a second time, while they removed them."""
    for temporary in _unfinished:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file where writing to it fails: the error of a full disk names none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # It is about another file.
            raise
        raise DataError(f"{path}: cannot be written ({error.strerror}).") from None
