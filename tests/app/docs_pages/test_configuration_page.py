"""docs/configuration.md is made from the table of keys."""

from __future__ import annotations

from app.docs_pages.configuration_page import CONFIGURATION_PAGE, page


def test_the_page_of_keys_is_what_the_table_says() -> None:
    assert CONFIGURATION_PAGE.read_text() == page(), "run `make docs`"
