"""How uvicorn runs the service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from uvicorn import Server
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ranksieve.errors import ParameterError, param


class OneProcess(Server):
    """A server that says when it takes requests."""

    when_started: Callable[[], None] = staticmethod(lambda: None)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self.when_started()


class PromptProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP whose answers are sent at once.

    Without TCP_NODELAY the body of an answer waits for the client to confirm the header, which takes 40 ms. asyncio
    sets the option only for sockets that name their protocol, and uvicorn's do not.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket for the address; refuses one that cannot be had."""
    made = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        if made is not None:
            made.close()
        raise ParameterError(
            f"{host}:{port}: cannot listen there ({error.strerror or error}); choose another ",
            param("host"), " or ", param("port"),
        ) from error  # fmt: skip
    return made
