"""What is checked before a request is read: its host, the origin of its page, its size and its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import Problem, busy
from .security import allowed_hosts, host_of
from .settings import ServiceSettings

BODY_SECONDS = 60.0  # in which the body of a request has to arrive
MOST_AT_ONCE = 1_000  # requests
MOST_BYTES = 200_000_000  # of the bodies of these, each of which takes a few times its size in memory

READING = ("GET", "HEAD", "OPTIONS")


class Gate:
    """Refuse requests that are too large or too slow, or that come from a page of another site."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.max_body, self.origins = app, settings.max_body, settings.origins
        self.hosts = allowed_hosts(settings)
        self.n_now = self.n_bytes = 0  # of requests that are being answered, and of their bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope["method"], Headers(scope=scope))
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        self.n_now += 1
        sizes: list[int] = []
        try:
            await self.app(scope, self._bounded(receive, sizes), send)
        finally:
            self.n_now -= 1
            self.n_bytes -= sum(sizes)

    def _check(self, method: str, headers: Headers) -> None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.hosts is not None and host_of(host) not in self.hosts:
            raise Problem("wrong-host", "Whoever runs the service can allow the name with --allow-host.")
        is_own_page = origin is None or origin.rpartition("//")[2] == host or origin in self.origins
        if method not in READING and not is_own_page:
            raise Problem(
                "wrong-origin",
                "Whoever runs the service can allow the site with --cors ORIGIN, or let a proxy pass on the "
                "Host header.",
            )
        if self.n_now >= MOST_AT_ONCE:
            raise busy(f"{self.n_now:,} requests are being answered.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_body:
            raise self._too_large()

    def _too_large(self) -> Problem:
        return Problem(
            "too-large", f"Send at most {self.max_body:,} bytes in one request, such as fewer texts."
        )

    def _bounded(self, receive: Receive, sizes: list[int]) -> Callable[[], Awaitable[Message]]:
        """`receive` of a body that is counted while it comes, and that has to come in time.

        sizes : of the parts of the body, which are added to it
        """
        is_whole, deadline = False, asyncio.get_running_loop().time() + BODY_SECONDS

        async def counted() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                seconds = f"{BODY_SECONDS:g} seconds"
                raise Problem("timeout", f"Send the whole request within {seconds}.") from None
            sizes.append(len(message.get("body", b"")))
            self.n_bytes += sizes[-1]
            if (n := sum(sizes)) > self.max_body:
                raise self._too_large()
            if self.n_bytes > max(MOST_BYTES, n):  # one body alone may be as large as --max-body
                raise busy(f"Requests of {self.n_bytes:,} bytes are being answered.")
            is_whole = not message.get("more_body", False)
            return message

        return counted
