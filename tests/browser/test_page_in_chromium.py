"""The page in a real browser: each state looks as what it is, and nothing breaks its own rules."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.http.api import Server
from app.http.page import page_files
from app.local.waiting import wait_for
from tests.app.http.flows_shown import (
    BEGINNING,
    HOSTILE,
    MM2_DOWN,
    TARGET_DOWN,
    TROUBLED,
    WELL,
    Shown,
    every_state,
    job_api,
    one_in_step,
    records_differ,
    switching,
)
from tests.browser.chromium import WITHIN, Seen, chromium, look_at

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium on PATH")
TOKEN = "0123456789abcdef"
LIVE = (WELL, TROUBLED, TARGET_DOWN)

Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def shown() -> Shown:
    return every_state()


@pytest.fixture(scope="module")
def address(shown: Shown) -> Iterator[str]:
    yield from served(shown)


def served(shown: Shown, token: str | None = None) -> Iterator[str]:
    server = Server(job_api(shown.tasks, shown.histories), "127.0.0.1", 0, token)
    server.start()
    try:
        yield server.address
    finally:
        server.stop()


@pytest.fixture
def look(shown: Shown, address: str, tmp_path: Path) -> Look:
    """At a place of the page; what its console complained of fails the test."""

    def at(place: str, *options: str) -> Seen:
        shown.beat(*LIVE)
        seen = look_at(f"{address}/#{place}", tmp_path / "profile", *options)
        assert seen.complaints == []
        return seen

    return at


def test_the_first_view_says_for_each_flow_whether_it_could_fail_over(look: Look) -> None:
    seen = look("/")
    for words in (
        "Could the target take over now?",
        "madrid → oslo YES Cut over, and lose nothing? All that Lockstep keeps is in step",
        "YES Fail over without the source? It would lose 2 records of those that madrid had",
        "madrid → lima NO Cut over, and lose nothing? the cluster lima at 10.0.0.7:9092 gives no answer",
        "NO Fail over without the source? the cluster lima at 10.0.0.7:9092 gives no answer",
        "oslo → madrid NO Cut over, and lose nothing? heartbeat: ",
        "NO Fail over without the source? records not copied: 8120",
        "rome → lima UNKNOWN Cut over, and lose nothing? The first comparison is not over yet",
        "acl PAUSED, scram-user FAULTED",
    ):
        assert words in seen.text
    assert seen.html.count('class="head"') == len(LIVE) + 2
    assert "✗ 1/5" in seen.html


def test_a_flow_that_is_stopped_has_no_kind_in_green(look: Look) -> None:
    seen = look(f"/flow/{TARGET_DOWN.name}")
    assert 'class="word good"' not in seen.html
    assert "check that the cluster is up" in seen.text


def test_a_kind_has_one_reason_and_a_refusal_what_to_do_and_names_stay_text(look: Look) -> None:
    assert "acl PAUSED" in look(f"/flow/{TROUBLED.name}").text
    refused = look(f"/flow/{TROUBLED.name}/refused")
    assert "allow it in the target's policy" in refused.text.replace("&#39;", "'")
    assert "<img" not in refused.html
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in refused.html


def test_changes_are_shown_with_before_and_after(look: Look) -> None:
    html = look(f"/flow/{WELL.name}/changes").html
    assert "<del>604800000</del>" in html
    assert "<ins>3600000</ins>" in html


def test_ten_thousand_groups_are_paged_and_filtered_by_what_the_address_says(look: Look) -> None:
    text = look(f"/flow/{WELL.name}/offsets?offset=50").text
    assert "10,000 partitions" in text
    assert "page 2 of 200" in text
    assert "billing-00050" in text
    lost = look(f"/flow/{WELL.name}/offsets?verdict=TOO_OLD&search=billing-0").text
    assert "billing-02507" in lost
    assert "billing-00050" not in lost
    assert "4 of 10,000" in lost


def test_the_last_hour_is_drawn(look: Look) -> None:
    seen = look(f"/flow/{MM2_DOWN.name}/history")
    assert seen.html.count("<polyline") >= 2
    assert "Age of the newest heartbeat: now 1 min" in seen.text


def test_a_list_that_is_empty_says_so(look: Look) -> None:
    assert "Nothing is refused." in look(f"/flow/{WELL.name}/refused").text
    assert "This job has no flow x->y." in look("/flow/x->y").text.replace("&gt;", ">")


def test_a_job_without_flows_and_one_in_step_look_like_that(tmp_path: Path) -> None:
    for address in served(Shown()):
        assert "This job has no flow." in look_at(address, tmp_path / "none").text
    well = one_in_step()
    for address in served(well):
        well.beat(WELL)
        assert "✓ 1/1" in look_at(address, tmp_path / "one").html


def test_a_source_that_is_gone_and_a_target_that_took_over_have_answers_of_their_own(tmp_path: Path) -> None:
    switched = switching()
    for address in served(switched):
        seen = look_at(f"{address}/#/", tmp_path / "switching")
        assert seen.complaints == []
        for words in (
            "NO Cut over, and lose nothing? the cluster madrid at 10.0.0.5:9092 gives no answer",
            "YES Fail over without the source? It would lose at most 120 records of those that madrid had",
            "rome → lima DONE Taken over. lima has taken over since",
        ):
            assert words in seen.text, words
        taken = look_at(f"{address}/#/flow/{BEGINNING.name}", tmp_path / "taken")
        assert "lockstep plan" not in taken.text
        assert "docs/failover.md names the next step" in taken.text


def test_how_the_records_stand_is_said_with_what_differs_and_what_is_stalled(tmp_path: Path) -> None:
    differing = records_differ()
    for address in served(differing):
        differing.beat(WELL)
        seen = look_at(f"{address}/#/flow/{WELL.name}", tmp_path / "records")
        assert seen.complaints == []
        for words in (
            "Could oslo take over from madrid now? NO Cut over, and lose nothing?",
            "Records RUNNING",
            "995 VERIFIED, 3 DIFFERENT, 1 STALLED, 1 UNVERIFIABLE",
            "compared through 2 min ago",
            "62 % of what was there before",
            "orders-0007 MISSING 1,204",
            "STALLED, the source moves and the target does not: orders-0042-0",
            "Of 204 differences the places are not kept",
            "1 partition stands still while the source moves see whether MirrorMaker 2's task",
        ):
            assert words in seen.text, words
        assert "<img" not in seen.html


def test_with_a_token_the_page_works_for_who_gives_it_as_a_password(tmp_path: Path) -> None:
    well = one_in_step()
    for address in served(well, TOKEN):
        well.beat(WELL)
        seen = look_at(address.replace("http://", f"http://me:{TOKEN}@"), tmp_path / "token")
        assert "madrid → oslo YES" in seen.text


def test_a_job_that_is_gone_is_said_and_what_is_shown_is_old(tmp_path: Path) -> None:
    well, found = one_in_step(), list[Seen]()
    server = Server(job_api(well.tasks, well.histories), "127.0.0.1", 0)
    server.start()
    # Five minutes of the page's time, a few seconds of ours: it asks 150 times, and the job ends in between.
    loading = threading.Thread(target=lambda: found.append(look_at(server.address, tmp_path / "gone", for_it=300_000)))
    try:
        loading.start()
        # The page's files, and the first answer.
        wait_for(lambda: server.answered > len(page_files()), WITHIN, "the page to have asked the job")
    finally:
        server.stop()
    loading.join(WITHIN)
    assert "the job does not answer; what is shown is" in found[0].text
    assert '<body class="stale">' in found[0].html
    assert "madrid → oslo YES" in found[0].text
