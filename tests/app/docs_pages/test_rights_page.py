"""docs/rights.md is made from the table of rights."""

from __future__ import annotations

from app.docs_pages.rights_page import RIGHTS_PAGE, page


def test_the_page_of_rights_is_what_the_table_says() -> None:
    assert RIGHTS_PAGE.read_text() == page(), "run `python -m app.docs_pages.rights_page`"
