"""The counting of requests, and the page on synced offsets."""

from __future__ import annotations

from typing import Any

from prometheus_client.samples import Sample

from bench.costs import counted, since
from bench.group_scenario import section

PASS: dict[str, Any] = {
    "groups": 10_000,
    "seconds": 12.34,
    "requests": {"OffsetFetch": 20_000.0, "ListGroups": 3.0},
    "peak": {"python": 200 * 2**20, "jvm": 900 * 2**20},
    "batch_seconds": 0.5,
    "batch_requests": 21.0,
}


def sample(name: str, value: float, **labels: str) -> Sample:
    return Sample(name, labels, value)


def test_requests_are_counted_by_api_over_both_clusters() -> None:
    found = counted(
        [
            sample("lockstep_admin_requests_total", 3, api="OffsetFetch", cluster="a"),
            sample("lockstep_admin_requests_total", 4, api="OffsetFetch", cluster="b"),
            sample("lockstep_batch_seconds_count", 10),
            sample("lockstep_batch_seconds_sum", 2.5),
            sample("lockstep_drift", 1, kind="acl"),
        ]
    )
    assert found == {"OffsetFetch": 7, "batches": 10, "batch seconds": 2.5}


def test_requests_in_between_leave_out_what_was_not_asked_and_what_is_no_request() -> None:
    before, after = (
        counted([sample("lockstep_batch_seconds_count", n), *_requests(of)])
        for n, of in ((1, {"ListGroups": 1, "OffsetFetch": 2}), (5, {"ListGroups": 1, "OffsetFetch": 6}))
    )
    assert since(after, before) == {"OffsetFetch": 4}


def _requests(of: dict[str, int]) -> list[Sample]:
    return [sample("lockstep_admin_requests_total", count, api=api) for api, count in of.items()]


def found(**parts: Any) -> dict[str, Any]:
    return {"groups": 1000, "topics": 50, "others": 200.0, "ages": {}, "cpu": {}, "passes": {}} | parts


def test_page_judges_lockstep_and_not_mm2() -> None:
    page = section(
        found(ages={"lockstep, at the end": [6.0], "mm2, at the end": [9.0]}, cpu={"lockstep, at the end": 12.34})
    )
    assert "| Lockstep, default: at the end | 1 | 6.00 | 6.00 | 6.00 | 6.00 | 12.3 | missed by 5.00 s |" in page
    assert "| MM2's own sync, every second: at the end | 1 | 9.00 | 9.00 | 9.00 | 9.00 | - | - |" in page


def test_page_tells_what_the_pass_over_many_groups_took() -> None:
    page = section(found(passes={"lockstep": PASS}))
    assert "12.3 s until the target has the last" in page
    assert "missed by 2.3 s" in page
    assert "sends 20,003 requests" in page
    assert "200 MiB in Python and 900 MiB in the JVM" in page
    assert "takes 0.50 s and 21 requests" in page
