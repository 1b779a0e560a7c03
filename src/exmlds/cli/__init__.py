"""The command line: one module per command. Heavy imports happen when a command runs."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import warnings
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from ..errors import DataError
from .compact import compact
from .compare import compare
from .convert import convert
from .demo import demo
from .evaluate import evaluate
from .explain import explain
from .help import Command, Group
from .info import info
from .inspect import inspect
from .labels import labels
from .output import harmless
from .predict import predict
from .remove import remove
from .report import report
from .serve import serve
from .standard_input import with_display_name
from .texts import OPTIONS
from .train import train
from .tune import tune
from .update import update

app = typer.Typer(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Extreme multi-label learning: predict the few relevant labels among up to millions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS = (
    *(demo, train, predict, explain, evaluate, report, compare, tune, serve),
    *(update, remove, compact),
    *(inspect, labels, info, convert),
)
for command in COMMANDS:
    app.command(cls=Command)(command)

LOG_LEVELS = ("debug", "info", "warning", "error")
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a disk that is full or broken


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Show log messages from this level on, on stderr: debug, info, warning or error.  "
            "[default: none are shown]",
        ),
    ] = None,
) -> None:
    _set_up_logging(log_level)
    if version:
        from .. import __version__

        print(f"exmlds {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


class _StderrHandler(logging.Handler):
    """Write to the stderr of the moment, because a progress bar replaces it while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        print(harmless(self.format(record)), file=sys.stderr)


def _set_up_logging(level: str | None) -> None:
    logger = logging.getLogger("exmlds")
    if level is None:
        logger.handlers = [logging.NullHandler()]  # without a handler, Python shows warnings and errors
        return
    if level.lower() not in LOG_LEVELS:
        raise DataError(f"--log-level must be {', '.join(LOG_LEVELS[:-1])} or error. Got {level!r} instead.")
    handler = _StderrHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.handlers = [handler]
    logger.setLevel(level.upper())


def main() -> None:
    """Run the command line; a user's error is one line and exit code 2."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        if sys.stdout is None:  # a file that is opened now would take its place
            raise DataError("Standard output is closed; send it to a file, or to /dev/null.")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # for terminals whose encoding lacks ✓
        try:
            app(join_ks(sys.argv[1:]), prog_name="exmlds")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _drop_output()
        sys.exit(1)
    except Exception as error:
        if os.environ.get("EXMLDS_DEBUG"):
            raise
        _fail(error)


def _drop_output() -> None:
    """Send what is still to be written to nowhere, so that Python does not fail to write it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def join_ks(arguments: list[str]) -> list[str]:
    """Join `-k 1 3 5` to `-k 1,3,5`, because an option takes one value.

    >>> join_ks(["evaluate", "model", "test.txt", "-k", "1", "3", "5", "--json"])
    ['evaluate', 'model', 'test.txt', '-k', '1,3,5', '--json']
    """
    joined: list[str] = []
    for argument in arguments:
        after_k = len(joined) > 1 and joined[-2] == "-k" and joined[-1].replace(",", "").isdigit()
        if after_k and argument.isdigit():
            joined[-1] += f",{argument}"
        else:
            joined.append(argument)
    return joined


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"exmlds: warning: {harmless(str(message))}", file=sys.stderr)


def _fail(error: Exception) -> NoReturn:
    message, code = f"internal error: {type(error).__name__}: {error}", 1
    if isinstance(error, OSError) and error.errno in WRITE_ERRORS and error.filename is None:
        # Errors about files name them, so this one is about standard output.
        message, code = f"standard output cannot be written ({error.strerror}).", 2
        _drop_output()
    elif isinstance(error, (ValueError, OSError)):  # our own errors are ValueErrors
        message = error.with_options(OPTIONS) if isinstance(error, DataError) else str(error)
        message, code = with_display_name(message), 2
    elif isinstance(error, MemoryError):
        message, code = "there is not enough memory for this command.", 2
    print(f"exmlds: {harmless(' '.join(message.split()))}", file=sys.stderr)
    if code == 1:
        print("Please report it with the traceback that EXMLDS_DEBUG=1 prints.", file=sys.stderr)
    sys.exit(code)
