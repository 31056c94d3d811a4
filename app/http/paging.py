"""A list in pages: which rows a request asks for, and the document that answers it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT, MOST = 50, 500
"""Rows of a page where none are asked for, and at most."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """`search`: what a row must contain, in small letters; `only`: the value that its filter must have, or ""."""

    offset: int = 0
    limit: int = LIMIT
    search: str = ""
    only: str = ""

    @classmethod
    def parse(cls, parameters: Mapping[str, str], filter_name: str = "") -> PageQuery:
        """`filter_name`: the parameter that `only` comes from. Raises ValueError that says what is wrong."""
        return cls(
            _number(parameters, "offset", 0),
            min(MOST, _number(parameters, "limit", LIMIT)),
            parameters.get("search", "").strip().lower(),
            parameters.get(filter_name, ""),
        )


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{name} must be a number, 0 or more")
    return int(text)


def paged(
    query: PageQuery,
    rows: Sequence[T],
    shown: Callable[[T], Mapping[str, Any]],
    *,
    texts: Callable[[T], Sequence[str]],
    value: Callable[[T], str] = lambda row: "",
) -> dict[str, Any]:
    """Rows that the query lets through. `texts`: of a row, for the search; `value`: of a row, for the filter.

    `total`: rows there are; `found`: rows that were let through; `values`: how many rows have each value, of those that
    the search lets through. Only rows of the page are made into documents.
    """
    searched = [row for row in rows if not query.search or any(query.search in text.lower() for text in texts(row))]
    values: dict[str, int] = {}
    for row in searched:
        values[value(row)] = values.get(value(row), 0) + 1
    found = [row for row in searched if not query.only or value(row) == query.only]
    page = found[query.offset : query.offset + query.limit]
    return {
        "total": len(rows),
        "found": len(found),
        "offset": query.offset,
        "limit": query.limit,
        "values": dict(sorted(values.items())),
        "rows": [shown(row) for row in page],
    }
