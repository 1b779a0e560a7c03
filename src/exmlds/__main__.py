"""The program `exmlds`, also `python -m exmlds`: signals are handled before anything large is imported."""

from __future__ import annotations

import gc
import signal
import sys
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(SystemExit):
    """A signal ended the program; on the way out, temporary files are removed."""


def main() -> None:
    """Run the command line; after a signal it ends as the shell does, with 128 + the number of the signal."""
    stopping = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    handled = [number for number in stopping if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _stop)
    sys.unraisablehook = _raise_again
    # Imports make many objects and hardly any cycles, for which Python would look after every 700 objects.
    gc.set_threshold(10_000)
    try:
        from .cli import main as run

        run()
    except Stopped as stopped:
        print("Stopped.", file=sys.stderr)
        raise SystemExit(stopped.code) from None
    finally:
        for number in handled:  # a second signal ends a program that does not end by itself
            signal.signal(number, signal.SIG_DFL)
        gc.freeze()  # Python need not look for cycles among all objects when it ends.


def _stop(number: int, _: object) -> None:
    raise Stopped(128 + number)


def _raise_again(dropped: Any) -> None:
    """Repeat a signal whose exception Python dropped, because a callback or a destructor was running."""
    if not isinstance(dropped.exc_value, Stopped):
        sys.__unraisablehook__(dropped)
        return
    code = dropped.exc_value.code

    def stop(*_: object) -> None:
        raise Stopped(code)

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


if __name__ == "__main__":
    main()
