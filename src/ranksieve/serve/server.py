"""How uvicorn runs the service."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from uvicorn import Server

from ranksieve.errors import ParameterError, param


class OneProcess(Server):
    """A server that says when it takes requests."""

    when_started: Callable[[], None] = staticmethod(lambda: None)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self.when_started()


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
