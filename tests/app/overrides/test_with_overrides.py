"""What is in force: the file, and over it what the flows' ledgers say, or said when they were last read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from app.overrides import with_overrides as module
from app.overrides.ledgers import Unreadable
from app.overrides.with_overrides import load_with_overrides
from app.properties.mistakes import ConfigurationError
from app.settings import Settings
from sinks.flow_settings import FlowSettings
from sinks.ledger.overrides import InLedger, Override
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\nb->a.enabled=true\n"
UNREADABLE = Unreadable("a->b: its ledger cannot be read: no broker answers")
Found = Mapping[Flow, InLedger | Unreadable]


def of(settings: Settings, flow: Flow) -> FlowSettings:
    return next(one for one in settings.flows if one.flow == flow)


def own(**values: str) -> InLedger:
    """Overrides of a flow; `__` stands for a dot."""
    return {("flow", name.replace("__", ".")): Override(value).to_text() for name, value in values.items()}


REFERENCE: InLedger = {("flow", "topics"): Override("${env:TOPICS}", reference=True).to_text()}
RATE_7, RATE_8 = own(lockstep__observe__rate="7"), own(lockstep__observe__rate="8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "m.properties"
    file.write_text(BASE)
    return file


def reading(found: Found) -> Callable[[Settings], Found]:
    """Ledgers that hold this, of the flows that are asked for."""
    return lambda settings: {one.flow: found[one.flow] for one in settings.flows}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for each time that the file is loaded."""
    calls: list[None] = []
    load = module.load

    def counting(*args: object, **given: object) -> Settings:
        calls.append(None)
        return load(*args, **given)  # type: ignore[arg-type]  # passes on whatever it gets

    monkeypatch.setattr(module, "load", counting)
    return calls


def test_without_overrides_the_file_is_loaded_once_and_they_are_known_to_be_none(
    path: Path, counted: list[None]
) -> None:
    found = load_with_overrides(path, read=reading({AB: {}, BA: {}}))
    assert (found.stored_overrides, found.override_values, len(counted)) == ({AB: {}, BA: {}}, {}, 1)


def test_reload_that_finds_the_same_overrides_loads_the_file_once_and_keeps_every_flow(
    path: Path, counted: list[None]
) -> None:
    ledgers = reading({AB: RATE_7, BA: {}})
    before = load_with_overrides(path, read=ledgers)
    counted.clear()
    after = load_with_overrides(path, before=before, read=ledgers)
    assert [of(after, flow) is of(before, flow) for flow in (AB, BA)] == [True, True]
    assert len(counted) == 1


def test_overrides_hold_for_their_flow_and_the_settings_know_them_as_kept_and_in_plain(path: Path) -> None:
    found = load_with_overrides(path, read=reading({AB: RATE_7, BA: {}}))
    assert [of(found, flow).pace.observe_rate for flow in (AB, BA)] == [7, 0]
    assert found.stored_overrides == {AB: RATE_7, BA: {}}
    assert found.override_values == {AB: {"lockstep.observe.rate": "7"}}


def test_only_the_ledgers_of_the_flows_that_were_asked_for_are_read(path: Path) -> None:
    found = load_with_overrides(path, ("b->a",), read=reading({BA: RATE_7}))
    assert [one.flow for one in found.flows] == [BA]
    assert found.stored_overrides == {BA: RATE_7}


def test_overrides_that_cannot_be_read_at_the_start_are_unknown_and_the_other_flow_has_its_own(path: Path) -> None:
    found = load_with_overrides(path, read=reading({AB: UNREADABLE, BA: RATE_7}))
    assert found.stored_overrides == {AB: None, BA: RATE_7}
    assert [of(found, flow).pace.observe_rate for flow in (AB, BA)] == [0, 7]


def test_overrides_that_cannot_be_read_on_a_reload_are_those_of_before(path: Path) -> None:
    before = load_with_overrides(path, read=reading({AB: RATE_7, BA: {}}))
    path.write_text(BASE + "a->b.topics=orders\n")
    after = load_with_overrides(path, before=before, read=reading({AB: UNREADABLE, BA: {}}))
    assert after.stored_overrides == {AB: RATE_7, BA: {}}
    assert of(after, AB).pace.observe_rate == 7
    assert not of(after, AB).topic_filter.should_replicate_topic("payments"), "the file is taken over even so"


def test_unknown_overrides_stay_unknown_on_a_reload_that_cannot_read_them_either(path: Path) -> None:
    before = load_with_overrides(path, read=reading({AB: UNREADABLE, BA: {}}))
    after = load_with_overrides(path, before=before, read=reading({AB: UNREADABLE, BA: {}}))
    assert after.stored_overrides == {AB: None, BA: {}}


def test_flow_that_nothing_changed_for_stays_the_same_object_while_the_others_overrides_change(path: Path) -> None:
    before = load_with_overrides(path, read=reading({AB: RATE_7, BA: RATE_7}))
    after = load_with_overrides(path, before=before, read=reading({AB: RATE_8, BA: RATE_7}))
    assert of(after, BA) is of(before, BA)
    assert of(after, AB) is not of(before, AB)
    assert of(after, AB).pace.observe_rate == 8


def test_deleted_override_gives_way_to_the_file(path: Path) -> None:
    path.write_text(BASE + "lockstep.observe.rate=5\n")
    before = load_with_overrides(path, read=reading({AB: RATE_7, BA: {}}))
    after = load_with_overrides(path, before=before, read=reading({AB: {}, BA: {}}))
    assert (of(after, AB).pace.observe_rate, after.override_values) == (5, {})
    assert of(after, BA) is of(before, BA)


@pytest.mark.parametrize("running", [True, False])
def test_wrong_override_is_a_mistake_in_the_ledger_of_its_flow_and_nothing_is_adopted(
    path: Path, running: bool
) -> None:
    before = load_with_overrides(path, read=reading({AB: RATE_7, BA: {}})) if running else None
    wrong = own(lockstep__observe__rate="many")
    with pytest.raises(ConfigurationError) as error:
        load_with_overrides(path, before=before, read=reading({AB: wrong, BA: {}}))
    assert str(error.value).startswith("the ledger of a->b: a->b.lockstep.observe.rate: 'many' is not allowed")
    assert before is None or (before.override_values, of(before, AB).pace.observe_rate) == (
        {AB: {"lockstep.observe.rate": "7"}},
        7,
    )


def test_overrides_that_cannot_be_decoded_are_all_told_each_with_its_flow(path: Path) -> None:
    damaged: InLedger = {("flow", "topics"): "t0ps3cr3t"}
    encoded: InLedger = {("", "my.password"): Override("t0ps3cr3t", encoded=True).to_text()}
    with pytest.raises(ConfigurationError) as error:
        load_with_overrides(path, read=reading({AB: damaged, BA: encoded}))
    assert [mistake.message for mistake in error.value.mistakes] == [
        "a->b: the override of topics in the ledger is damaged: delete it, or write it again",
        "b->a: the override of my.password in the ledger is encoded: set password.encoder.secret as it was then",
    ]
    assert "t0ps3cr3t" not in str(error.value)


def test_mistake_of_the_file_is_told_before_any_ledger_is_read(path: Path) -> None:
    path.write_text(BASE + "lockstep.observe.rate=many\n")
    with pytest.raises(ConfigurationError, match=r"m\.properties:6: lockstep\.observe\.rate: 'many' is not allowed"):
        load_with_overrides(path, read=reading({}))


def test_reference_in_an_override_is_looked_up_where_the_file_is_loaded_and_kept_unresolved(path: Path) -> None:
    path.write_text(BASE + "lockstep.overrides.allowed=references\n")
    found = load_with_overrides(path, environ={"TOPICS": "orders"}, read=reading({AB: REFERENCE, BA: {}}))
    assert of(found, AB).topic_filter.should_replicate_topic("orders")
    assert not of(found, AB).topic_filter.should_replicate_topic("payments")
    assert found.override_values == {AB: {"topics": "${env:TOPICS}"}}


def test_reference_in_place_of_the_same_text_is_taken_over_and_looked_up_from_then_on(path: Path) -> None:
    path.write_text(BASE + "lockstep.overrides.allowed=references\n")
    before = load_with_overrides(path, read=reading({AB: own(my__size="${env:SIZE}"), BA: {}}))
    assert before.plugin_properties[AB]["my.size"] == "${env:SIZE}"
    reference: InLedger = {("flow", "my.size"): Override("${env:SIZE}", reference=True).to_text()}
    after = load_with_overrides(path, environ={"SIZE": "3"}, before=before, read=reading({AB: reference, BA: {}}))
    assert after.plugin_properties[AB]["my.size"] == "3"


def test_override_that_no_longer_works_can_be_deleted_while_the_job_runs(path: Path) -> None:
    path.write_text(BASE + "lockstep.overrides.allowed=references\n")
    before = load_with_overrides(path, environ={"TOPICS": "orders"}, read=reading({AB: REFERENCE, BA: {}}))
    after = load_with_overrides(path, environ={}, before=before, read=reading({AB: {}, BA: {}}))
    assert of(after, AB).topic_filter.should_replicate_topic("payments")
    assert of(after, BA) is of(before, BA)


@pytest.mark.parametrize(
    "file",
    [BASE.replace("b->a.enabled=true\n", ""), BASE.replace("a,b", "a,c").replace("b.", "c.").replace("b->", "c->")],
)
def test_flow_that_has_overrides_and_is_gone_from_the_file_takes_them_with_it(path: Path, file: str) -> None:
    before = load_with_overrides(path, read=reading({AB: {}, BA: RATE_7}))
    path.write_text(file)
    after = load_with_overrides(path, before=before, read=lambda settings: {one.flow: {} for one in settings.flows})
    assert BA not in {one.flow for one in after.flows}
    assert after.override_values == {}
