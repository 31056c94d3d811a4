"""Configs that differ in effect are reported of all topics, whichever of them a pass looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import EFFECTIVE, Metrics
from sinks.engine.reconcile import Report
from sinks.every_kind.comparison import Comparison
from sinks.every_kind.kinds_agenda import KindFindings
from sinks.model.changes import Kind
from sinks.model.effective_drift import DifferingConfig, grouped
from sinks.model.plan import Plan
from tests.sinks.builders import FLOW, World, config_change, flow_settings, put_topic, set_config

WEEK, DAY, HOUR = "604800000", "86400000", "3600000"
INTERVAL = 60.0
NAMES = ("retention.ms", "segment.bytes", "retention.bytes")


def world() -> World:
    """x, y and z in step, all at their defaults; retention.ms is a day on the target."""
    built = World()
    for topic in "xyz":
        put_topic(built.source, topic)
    built.target.defaults["retention.ms"] = DAY
    built.settle()
    return built


def told(report: Report) -> dict[tuple[str, str, str], int]:
    return {(group.case.name, group.case.source, group.case.target): group.topics for group in report.effective}


def test_pass_that_looks_at_one_topic_tells_of_all() -> None:
    built = world()
    assert told(built.run_pass()) == {("retention.ms", WEEK, DAY): 3}
    assert told(built.run_pass("x")) == {("retention.ms", WEEK, DAY): 3}


def test_topic_that_gets_a_value_of_its_own_counts_no_longer_and_counts_again_without_it() -> None:
    built = world()
    set_config(built.source, "x", "retention.ms", HOUR)
    built.run_pass()
    assert told(built.run_pass()) == {("retention.ms", WEEK, DAY): 2}
    set_config(built.source, "x", "retention.ms", None)
    built.run_pass()
    assert told(built.run_pass()) == {("retention.ms", WEEK, DAY): 3}


def test_topic_that_is_gone_counts_no_longer() -> None:
    built = world()
    del built.source.topics["x"]
    assert told(built.run_pass()) == {("retention.ms", WEEK, DAY): 2}


def test_other_default_of_the_target_is_seen_by_the_next_full_comparison() -> None:
    built = world()
    built.target.defaults["retention.ms"] = HOUR
    assert told(built.run_pass(after=INTERVAL)) == {("retention.ms", WEEK, HOUR): 3}
    built.target.defaults.clear()
    assert told(built.run_pass(after=INTERVAL)) == {}


def test_other_default_of_the_source_is_seen_by_the_next_look() -> None:
    built = world()
    built.source.defaults["retention.ms"] = HOUR
    assert told(built.run_pass()) == {("retention.ms", HOUR, DAY): 3}


def test_nothing_is_pending_for_it() -> None:
    report = world().run_pass(everything=True)
    assert (report.plan.changes, report.outcomes) == ((), ())


def test_defaults_taken_from_the_source_are_written_and_end_it() -> None:
    built = world()
    built.settings = flow_settings({"use.defaults.from": "source"})
    built.restart()
    assert config_change("a.x", "retention.ms", None, WEEK) in built.run_pass().plan.changes
    assert told(built.run_pass()) == {}


def test_status_and_metric_count_it_after_each_pass() -> None:
    built, metrics = world(), Metrics("1")
    task = FlowTask(built.reconcile, metrics, built.clock)
    status = task.step(None, everything=True).as_json()["effective"]
    labels = {"source": "a", "target": "b", "kind": EFFECTIVE}
    assert status["drift"] == 3
    assert [(row["name"], row["topics"]) for row in status["configs"]] == [("retention.ms", 3)]
    assert metrics.registry.get_sample_value("lockstep_drift", labels) == 3
    built.target.defaults.clear()
    assert task.step(None, everything=True).effective == ()
    assert metrics.registry.get_sample_value("lockstep_drift", labels) == 0


def compared(found: Mapping[str, Sequence[str]]) -> Comparison:
    cases = {topic: [DifferingConfig(Kind.TOPIC_CONFIG, name, WEEK, DAY) for name in found[topic]] for topic in found}
    return Comparison(Plan(FLOW), covered={topic: f"a.{topic}" for topic in found}, drifts=cases)


looks = st.lists(
    st.dictionaries(st.sampled_from("vwxyz"), st.lists(st.sampled_from(NAMES), unique=True), max_size=5), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(looks, st.sets(st.sampled_from("vwxyz")))
def test_what_is_kept_is_the_last_look_at_each_topic_that_is_there(
    looks: list[dict[str, list[str]]], there: set[str]
) -> None:
    kept, last = KindFindings(), dict[str, list[str]]()
    for look in looks:
        kept.keys_compared(look.keys(), compared(look))
        last |= look
        assert kept.drifts("vwxyz") == expected(last)
    assert kept.drifts(there) == expected({topic: names for topic, names in last.items() if topic in there})


def expected(last: dict[str, list[str]]) -> object:
    counts = Counter(name for names in last.values() for name in names)
    return grouped({DifferingConfig(Kind.TOPIC_CONFIG, name, WEEK, DAY): count for name, count in counts.items()})


def test_topics_that_differ_in_the_same_way_share_what_is_kept() -> None:
    kept = KindFindings()
    names = [f"topic-{number}" for number in range(1_000)]
    kept.keys_compared(names, compared(dict.fromkeys(names, NAMES)))
    assert len({id(cases) for cases in kept._cases.values()}) == 1
    assert sum(group.configs for group in kept.drifts(names)) == 1_000 * len(NAMES)
