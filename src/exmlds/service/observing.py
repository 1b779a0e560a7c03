"""What is done with every answer: headers of security, measurements, and a line in the log."""

from __future__ import annotations

import logging
import time
import traceback

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import ModelError
from .prometheus import Measurements
from .security import HEADERS

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
log = logging.getLogger("exmlds.service")


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
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("%s%s\n%s", type(error).__name__, message, where)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path_format", "other")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.measurements.add_request(method, route, status, seconds)
            log.info("%s %s %d %.1f ms", method, route, status, 1000 * seconds)
