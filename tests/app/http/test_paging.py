"""A list in pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.api import PageQuery, paged
from app.http.openapi import LIMIT, MOST

ROWS = [(f"group-{number:03}", "SYNCED" if number % 3 else "TOO_OLD") for number in range(120)]


def asked(**parameters: str) -> dict[str, Any]:
    query = PageQuery.parse(parameters, "verdict")
    return paged(query, ROWS, lambda row: {"group": row[0]}, texts=lambda row: (row[0],), value=lambda row: row[1])


def test_a_page_is_fifty_rows_and_five_hundred_at_most() -> None:
    assert len(asked()["rows"]) == LIMIT
    assert PageQuery.parse({"limit": "100000"}).limit == MOST


def test_search_and_filter_hold_together_and_values_count_what_the_search_found() -> None:
    found = asked(search="GROUP-01", verdict="TOO_OLD")
    assert [row["group"] for row in found["rows"]] == ["group-012", "group-015", "group-018"]
    assert (found["total"], found["found"], found["values"]) == (120, 3, {"SYNCED": 7, "TOO_OLD": 3})


@given(limit=st.integers(1, 200), search=st.sampled_from(["", "1", "group-0", "none"]))
def test_pages_one_after_another_are_all_rows_once(limit: int, search: str) -> None:
    whole = [row for row in ROWS if search in row[0]]
    seen: list[str] = []
    for offset in range(0, len(ROWS) + limit, limit):
        seen += [row["group"] for row in asked(search=search, limit=str(limit), offset=str(offset))["rows"]]
    assert seen == [group for group, _ in whole]


@pytest.mark.parametrize("wrong", ["-1", "x", "1.5", "9" * 10, "²", ""])
def test_an_offset_that_makes_no_sense_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="offset must be a number"):
        PageQuery.parse({"offset": wrong})
