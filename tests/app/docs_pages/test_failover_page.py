"""The states in docs/failover.md are made from their table."""

from __future__ import annotations

from app.docs_pages.failover_page import FAILOVER_PAGE, diagram, page
from sinks.ledger.failover_states import State


def test_the_states_on_the_page_are_what_the_table_says() -> None:
    assert FAILOVER_PAGE.read_text(encoding="utf-8") == page(), "run `python -m app.docs_pages.failover_page`"


def test_every_state_is_in_the_diagram() -> None:
    assert [state for state in State if f"--> {state}:" not in diagram() and state is not State.MIRRORING] == []
