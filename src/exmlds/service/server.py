"""Runs a service: sockets, signals, and the end without a lost request."""

from __future__ import annotations

import asyncio
import signal
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import DataError, DataWarning, NoKnownWordWarning
from .app import create_app
from .core import Service
from .settings import ServiceSettings

GRACE_SECONDS = 30  # in which requests that were begun are answered after a signal
HEAD_SECONDS = 30  # in which the head of the next request has to arrive
ANSWER_SECONDS = 300  # after which an answer that nobody takes is dropped
MOST_CONNECTIONS = 800  # of the 1,024 files that a process has open in most systems
BACKLOG = 512  # connections that wait to be accepted
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Connection(H11Protocol):
    """A connection that is closed where the next request is late, and refused where there are too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._expect_request(self.cycle)

    def on_response_complete(self) -> None:
        answered = self.cycle
        super().on_response_complete()  # may begin with the next request
        self._expect_request(answered)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel_deadline()

    def _expect_request(self, answered: object) -> None:
        """answered : the request before, or None"""
        self._cancel_deadline()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._close_if_late, answered)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _close_if_late(self, answered: object) -> None:
        if self.cycle is answered:
            self._deadline = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)
            self.transport.close()  # after what was written is sent


class Server(uvicorn.Server):
    """A server that a signal ends: it accepts no new connections, and answers the requests that it has."""

    def __init__(self, service: Service, started: Callable[[int], None]) -> None:
        """started : is called with the port when the service answers"""
        self.service, self.when_started = service, started
        super().__init__(
            uvicorn.Config(
                create_app(service),
                http=Connection,
                log_config=None,
                access_log=False,  # it has queries, in which texts may be
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="on",
                timeout_keep_alive=HEAD_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end the server, and the process ends as usual after that."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            with suppress(NotImplementedError):  # of a system without such signals
                loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.force_exit = self.should_exit  # a second signal does not wait
        self.should_exit = self.service.is_ending = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            self.when_started(sockets[0].getsockname()[1])


def run(settings: ServiceSettings, started: Callable[[str], None]) -> None:
    """Serve a model until a signal ends it.

    started : is called with the address when the service answers
    """
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    with _listening(settings.host, settings.port) as listener:
        _serve(settings, listener, lambda port: started(f"http://{host}:{port}/"))


def _serve(settings: ServiceSettings, listener: socket.socket, started: Callable[[int], None]) -> None:
    # Nobody would read warnings about texts, and those about changes name ids and labels.
    warnings.simplefilter("ignore", NoKnownWordWarning)
    service = Service(settings)
    warnings.simplefilter("ignore", DataWarning)
    try:
        asyncio.run(Server(service, started).serve([listener]))
    finally:
        service.close()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; an error before a model is loaded, where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only connections of a socket with this protocol send small answers at once (TCP_NODELAY).
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        return listener
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise DataError(
            f"{host}:{port} cannot be listened on ({reason}); choose another --port or --host."
        ) from None
