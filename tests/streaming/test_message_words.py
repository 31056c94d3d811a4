"""Numbers in messages have the noun, and the verb, of their number."""

from __future__ import annotations

import pytest

from streaming.message_words import number_of


@pytest.mark.parametrize(
    ("number", "plain", "irregular"),
    [(0, "0 records", "0 topics are"), (1, "1 record", "1 topic is"), (2, "2 records", "2 topics are")],
)
def test_one_is_no_plural_and_none_is_one(number: int, plain: str, irregular: str) -> None:
    assert number_of(number, "record") == plain
    assert number_of(number, "topic is", "topics are") == irregular
