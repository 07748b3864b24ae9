"""Lists in a specification's tables are axes of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any


def choices(*tables: Mapping[str, Any] | None) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Every choice of one value from each list: the values where there was one to choose, and the tables with them.

    Examples
    --------
    >>> list(choices({"leaves": [4, 8], "trees": 3}, None))
    [({'leaves': 4}, [{'leaves': 4, 'trees': 3}, None]), ({'leaves': 8}, [{'leaves': 8, 'trees': 3}, None])]
    """
    axes = [
        (place, key, values)
        for place, table in enumerate(tables)
        for key, values in (table or {}).items()
        if isinstance(values, list)
    ]
    for chosen in itertools.product(*(values for _, _, values in axes)):
        made = [None if table is None else dict(table) for table in tables]
        grid = {}
        for (place, key, values), value in zip(axes, chosen, strict=True):
            table = made[place]
            assert table is not None
            table[key] = value
            if len(values) > 1:
                grid[key] = value
        yield grid, made
