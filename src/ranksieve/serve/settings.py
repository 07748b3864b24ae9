"""`Settings`: what a service serves, to whom, and its limits; fixed when it starts."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksieve.errors import ParameterError, param

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """What one request may ask for.

    Attributes
    ----------
    depth
        Candidates per query.
    documents
        Documents in one answer, and in one request to re-rank.
    query
        Characters of a query.
    body
        Bytes of a request.
    queries
        Judged queries in the table of queries.
    """

    depth: int = 2_000
    documents: int = 2_000
    query: int = 10_000
    body: int = 16 << 20
    queries: int = 2_000


@dataclass(frozen=True)
class Settings:
    """Everything that the service reads and writes, and who may use it."""

    index: Path | None = None  # without it, models score feature vectors alone
    models: tuple[Path, ...] = ()
    judgements: Path | None = None
    queries: Path | None = None
    trained: Path | None = None  # folder for models trained on the page
    title: str | None = None  # the field that is shown as a document's title
    encode: str | None = None  # file.py:function that makes vectors of queries
    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    read_only: bool = False
    limits: Limits = field(default_factory=Limits)
    training: Mapping[str, Any] = field(default_factory=dict)  # parameters of `train`, instead of the usual ones
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.is_local and not self.read_only and not self.token:
            raise ParameterError(
                param("host"), f" is {self.host}, which others can reach; give a token with ", param("token"),
                " or the variable RANKSIEVE_TOKEN, or serve with ", param("read_only"),
            )  # fmt: skip
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise ParameterError(
                param("token"), f" has {len(self.token)} characters; expected at least {SHORTEST_TOKEN} of ASCII, such "
                "as 'openssl rand -hex 16' prints",
            )  # fmt: skip
        if self.index is None:
            needs_index = ("judgements", "trained", "title", "encode")
            for name in (name for name in needs_index if getattr(self, name) is not None):
                raise ParameterError(param(name), " needs an index; give its folder as INDEX")
            if not self.models:
                raise ParameterError("there is nothing to serve; give the folder of an index, or ", param("model"))
        if self.queries is not None and self.judgements is None:
            raise ParameterError(param("query_file"), " needs ", param("judgements"), ", the file that grades them")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def known_hosts(self) -> frozenset[str]:
        """Names by which requests may call the service, in lower case."""
        own = self.host if ":" not in self.host else f"[{self.host}]"
        name = () if self.is_local else (socket.gethostname(),)
        return frozenset(name.lower() for name in (*LOOPBACK, own, *name, *self.allowed_hosts))

    @property
    def own_queries(self) -> Path | None:
        """The file for the texts of judged queries, beside the judgements."""
        return None if self.judgements is None else self.judgements.with_name(self.judgements.name + ".queries.tsv")

    @property
    def trained_folder(self) -> Path | None:
        if self.trained is not None or self.judgements is None:
            return self.trained
        return self.judgements.with_name(self.judgements.name + ".models")
