"""`PageState`: what the address of a page says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from ranksieve.errors import ParameterError
from ranksieve.serve.comparison import ComparedRankers
from ranksieve.serve.served_models import FIRST_STAGE
from ranksieve.serve.service import Service

MOST_COLUMNS = 2  # models beside the first stage
MOST_SHOWN = 100  # results of a column
USUAL_SHOWN = 10
WEIGHT = "w."  # before the name of a field in the address


@dataclass(frozen=True)
class PageState:
    """What the address says: query, columns and settings."""

    text: str = ""
    models: tuple[str, ...] | None = None  # None: the last two
    k: int = USUAL_SHOWN
    depth: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    stage: str | None = None

    @classmethod
    def of(cls, service: Service, params: Any) -> PageState:
        """Read and check the parameters of an address."""
        weights = {}
        for name, value in params.items():
            if name.startswith(WEIGHT) and value.strip():
                weights[name.removeprefix(WEIGHT)] = _number(name, value)
        given = [name for name in params.getlist("model") if name]
        for name in given:
            service.models.find(name)
        k = _whole("k", params.get("k"), MOST_SHOWN) or USUAL_SHOWN
        return cls(
            service.check_query(params.get("q", "")),
            tuple(dict.fromkeys(given))[:MOST_COLUMNS] if given or "model" in params else None,
            k,
            _whole("depth", params.get("depth"), service.settings.limits.depth),
            weights,
            params.get("stage") or None,
        )

    def address(self, path: str = "/", **changes: Any) -> str:
        """The address of this state, or of one with changes; what is as usual is left out."""
        extra = {name: changes.pop(name) for name in list(changes) if name not in self.__dataclass_fields__}
        state = replace(self, **changes)
        pairs: list[tuple[str, Any]] = [("q", state.text)] if state.text else []
        if state.models is not None:
            pairs += [("model", name) for name in state.models or ("",)]
        pairs += [("k", state.k)] if state.k != USUAL_SHOWN else []
        pairs += [("depth", state.depth)] if state.depth is not None else []
        pairs += [(WEIGHT + name, f"{value:g}") for name, value in state.weights.items()]
        pairs += [("stage", state.stage)] if state.stage is not None else []
        pairs += extra.items()
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def columns(self, service: Service) -> ComparedRankers:
        models = self.models if self.models is not None else tuple(service.models.names[-MOST_COLUMNS:])
        stage = service.stage_with([f"{name}:{value!r}" for name, value in self.weights.items()], self.stage)
        return ComparedRankers((FIRST_STAGE, *models), stage, self.depth)


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ParameterError(f"{name[:40]} is {value[:40]!r}; expected a number") from None


def _whole(name: str, value: str | None, most: int) -> int | None:
    if value is None or not value.strip():
        return None
    text = value.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= most):
        raise ParameterError(f"{name} is {value[:40]!r}; expected an integer from 1 to {most:,}")
    return int(text)
