"""A probe that breaks off is an answer: a job that waited for another would never read MM2's topics again."""

from __future__ import annotations

from pathlib import Path

from app.job.cluster_probe import BackgroundProbe
from app.job.commit_streams import RIGHT_PROBE_INTERVAL
from streaming.mm2.records import RecordKind
from streaming.mm2.topic_roles import TopicRole
from streaming.query_plan import ClusterSource, QueryPlan
from tests.app.job.test_commit_streams import Stage

SOURCE = ClusterSource("a", {"bootstrap.servers": "a:1"}, {"t": TopicRole(RecordKind.HEARTBEAT)})
PLAN = QueryPlan("b", (SOURCE,), 1.0, Path("checkpoints"))


def test_a_source_whose_probe_breaks_off_is_left_out_with_the_reason() -> None:
    def breaks(source: ClusterSource) -> tuple[ClusterSource | None, str | None]:
        raise OSError("s3cret")

    asked = BackgroundProbe(breaks, run=lambda call: call())
    for _ in range(2):
        asked.ask(PLAN)
        found = asked.take()
        assert found is not None
        assert (found.plan.sources, found.reasons) == ((), ("what can be read of a is not known: OSError",))
    assert asked.take() is None


def test_a_cluster_whose_commits_cannot_be_probed_is_asked_again_after_a_while() -> None:
    stage = Stage()
    sound = stage.stream._probe

    def breaks(alias: str, options: object) -> str:
        raise OSError("s3cret")

    stage.stream._probe = breaks
    stage.want()
    stage.tend()
    reason = next(iter(stage.feeds.values())).reason or ""
    assert "is not known: OSError" in reason
    stage.stream._probe = sound
    stage.tend(after=RIGHT_PROBE_INTERVAL)
    assert stage.live == [True, True]
