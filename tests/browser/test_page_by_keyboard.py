"""The page without a mouse: Tab and Enter reach everything, and an update takes nothing out of one's hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.http.api import Server
from app.local.waiting import wait_for
from tests.app.http.flows_shown import TROUBLED, WELL, every_state, job_api
from tests.browser.chromium import WITHIN, chromium
from tests.browser.keyboard import Driven, driven

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium on PATH")

MOST_TABS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    shown = every_state()
    shown.beat(WELL, TROUBLED)
    running = Server(job_api(shown.tasks, shown.histories), "127.0.0.1", 0)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    with driven(tmp_path_factory.mktemp("keyboard")) as found:
        yield found


def tab_to(page: Driven, words: str) -> None:
    """Tab until this has the focus."""
    seen = []
    for _ in range(MOST_TABS):
        page.press("Tab")
        seen.append(page.focused)
        if words in seen[-1]:
            return
    raise AssertionError(f"{words!r} is not among what Tab leads to: {seen}")


def test_the_first_tab_leads_past_the_head_of_the_page(page: Driven, server: Server) -> None:
    page.open(server.address, "Could the target take over now?")
    page.press("Tab")
    assert page.focused == "To the content"
    page.press("Enter")
    assert page.says("document.activeElement.id") == "main"


def test_a_flow_and_its_tabs_are_opened_with_enter(page: Driven, server: Server) -> None:
    page.open(f"{server.address}/?again", "Could the target take over now?")
    tab_to(page, TROUBLED.name.replace("->", " → "))
    assert page.says("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter")
    page.wait_for_text("take over from")
    tab_to(page, "Refused")
    page.press("Enter")
    page.wait_for_text("what to do")


def test_a_slash_goes_to_the_search_and_an_update_leaves_the_focus_there(page: Driven, server: Server) -> None:
    page.open(f"{server.address}/?third#/flow/{WELL.name}/offsets", "page 1 of 200")
    page.press("/")
    assert page.says("document.activeElement.type") == "search"
    for letter in "billing-02507":
        page.press(letter)
    page.wait_for_text("1 of 10,000")
    answered = server.answered
    wait_for(lambda: server.answered > answered + 2, WITHIN, "the page to have asked again")
    assert page.says("document.activeElement.value") == "billing-02507"


def test_the_next_page_of_a_list_is_reached_by_keyboard(page: Driven, server: Server) -> None:
    page.open(f"{server.address}/?fourth#/flow/{WELL.name}/offsets", "page 1 of 200")
    tab_to(page, "Further")
    page.press("Enter")
    page.wait_for_text("page 2 of 200")
