"""The pages and tables in docs/ that are made from the code are what the code says."""

from __future__ import annotations

import re

import pytest

from app.docs_pages import PAGES, diagram, opened, operations
from app.http.openapi import API_BASE, document
from app.local.jars import PROJECT
from app.overrides.overridable import closed
from app.properties.keys import OPENABLE, TABLE
from sinks.ledger.failover_record import State


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (PROJECT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_every_state_is_in_the_diagram() -> None:
    assert [state for state in State if f"--> {state}:" not in diagram() and state is not State.MIRRORING] == []


def test_every_path_of_the_document_is_on_the_page() -> None:
    assert [path for path in document("1")["paths"] if f"`{API_BASE}{path}`" not in operations()] == []


def test_every_key_that_opens_by_a_word_and_no_other_is_named() -> None:
    named = {name for name in re.findall(r"`([^`]+)`", opened()) if name in TABLE}
    assert named == {name for name in TABLE if closed(name, False, ()) and not closed(name, False, OPENABLE)}
