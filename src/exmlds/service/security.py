"""Who may do what: tokens, host names, origins of pages, and the headers that protect a browser."""

from __future__ import annotations

import hmac
import ipaddress
from typing import Literal

from starlette.requests import Request

from .problems import Problem
from .settings import AccessTokens, ServiceSettings

Access = Literal["open", "read", "write"]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def needed_token(access: Access, tokens: AccessTokens) -> str | None:
    return {"open": None, "read": tokens.read, "write": tokens.for_writing}[access]


def check_token(request: Request, access: Access, tokens: AccessTokens) -> None:
    """Raise a `Problem` if the request has no token for this access."""
    if needed_token(access, tokens) is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    given = given.strip() if scheme.lower() == "bearer" else ""
    # Both are compared in any case, and in the same time whether they agree or not.
    may_write, may_read = _is_same(given, tokens.for_writing), _is_same(given, tokens.read)
    if may_write or (access == "read" and may_read):
        return
    if may_read:
        raise Problem("forbidden", "The token is for reading only. Send the token for writing.")
    raise Problem(
        "unauthorized",
        "Send `Authorization: Bearer TOKEN` with the token that whoever runs the service has given you.",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _is_same(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (token or "").encode()) and bool(token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def allowed_hosts(settings: ServiceSettings) -> frozenset[str] | None:
    """The host names that the service answers to; None for any.

    A page of another site can let its name point to 127.0.0.1 and then read what a service there answers.
    """
    hosts = settings.hosts or (("localhost", "127.0.0.1", "::1") if is_loopback(settings.host) else ())
    if not hosts:
        return None
    return frozenset(
        host_of(f"[{host}]" if ":" in host and not host.startswith("[") else host)
        for host in (*hosts, settings.host)
    )


def host_of(header: str) -> str:
    """The host name of a Host header or of an origin, without its port.

    >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("http://a.example")
    ('localhost', '[::1]', 'a.example')
    """
    host = header.rpartition("//")[2]
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()
