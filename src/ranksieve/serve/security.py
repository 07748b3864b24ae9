"""`Guard`: checks access and sizes of requests, adds headers to answers, and counts; around the whole application."""

from __future__ import annotations

import hmac
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ranksieve.serve.problems import Refused, problem
from ranksieve.serve.request_metrics import RequestMetrics
from ranksieve.serve.settings import Settings

SAFE = ("GET", "HEAD")
LONGEST_NUMBER = 19
READING = ("/rerank", "/explain")  # computed for a body, and change nothing
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Refuses requests before the application sees them.

    - `Host` must be a known name: another site's name that was made to point here (DNS rebinding) is not.
    - A request that a browser sends for another site's page is refused: by `Origin` and by `Sec-Fetch-Site`.
    - What changes something needs the token, where there is one, and is refused with `read_only`.
    - A body that is too large is not read to its end.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: RequestMetrics):
        self._app, self._settings, self._metrics = app, settings, metrics
        self._hosts, self._limit = settings.known_hosts, settings.limits.body
        self._token = None if settings.token is None else settings.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = Answer(send)
        start = time.perf_counter()
        try:
            try:
                self._check(scope["method"], scope["path"], Headers(scope=scope))
                await self._app(scope, self._limited(receive), answer.send)
            except Refused as error:
                if answer.status is not None:
                    raise
                await problem(error.status, error.detail, error.headers)(scope, receive, answer.send)
        finally:
            self._metrics.add(scope, answer.status or 500, time.perf_counter() - start)

    def _check(self, method: str, path: str, headers: Headers) -> None:
        host = headers.getlist("host")
        if len(host) != 1 or _name(host[0]) not in self._hosts:
            raise Refused(421, "the Host header is not a name of this service; allow it with --allow-host")
        self._check_origin(method, host[0], headers)
        if method not in SAFE and path not in READING:
            self._check_write(headers)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < LONGEST_NUMBER):
            raise Refused(400, "Content-Length is not a number")
        if int(length) > self._limit:
            raise Refused(413, f"the request has {int(length):,} bytes; at most {self._limit:,} are read")

    def _check_origin(self, method: str, host: str, headers: Headers) -> None:
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        if method in SAFE:
            if site == "cross-site" and mode != "navigate":
                raise Refused(403, "the request comes from a page of another site")
            return
        origin = headers.get("origin")
        is_own = origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
        if not is_own or site not in (None, "same-origin", "none"):
            raise Refused(403, "the request comes from a page of another site")

    def _check_write(self, headers: Headers) -> None:
        if self._settings.read_only:
            raise Refused(403, "the service is read-only")
        if self._token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            raise Refused(
                401, "a token is needed to write: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )

    def _limited(self, receive: Receive) -> Receive:
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise Refused(413, f"the request is too large; at most {self._limit:,} bytes are read")
            return message

        return limited


class Answer:
    """Adds headers to an answer, and knows its status."""

    def __init__(self, send: Send):
        self._send = send
        self.status: int | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    has_port = bool(colon) and port.isascii() and port.isdigit()
    return (name if has_port else host).lower().removesuffix(".")
