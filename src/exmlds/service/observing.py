"""What is done with every answer: headers of security, measurements, and a line in the log."""

from __future__ import annotations

import logging
import time
import traceback
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import ModelError
from .prometheus import Measurements
from .security import HEADERS

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
N_CALLS = 8  # of a failure that the log names
log = logging.getLogger("exmlds.service")


def _where(error: Exception) -> str:
    """The innermost calls, such as "growth.py:33 work > text.py:401 partial_fit", on one line."""
    calls = traceback.extract_tb(error.__traceback__)[-N_CALLS:]
    return " > ".join(f"{Path(call.filename).name}:{call.lineno} {call.name}" for call in calls)


class Observer:
    """Add headers to answers, count them and log them. Neither texts nor queries stand in the log."""

    def __init__(self, app: ASGIApp, measurements: Measurements) -> None:
        self.app, self.measurements = app, measurements

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self.app(scope, receive, observed)
        except Exception as error:
            # The message of another error may hold what a user sent.
            message = f": {error}" if isinstance(error, (ModelError, OSError)) else ""
            log.error("%s%s (%s)", type(error).__name__, message, _where(error))
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path_format", "other")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.measurements.add_request(method, route, status, seconds)
            log.info("%s %s %d %.1f ms", method, route, status, 1000 * seconds)
