"""Overrides as a ledger keeps them: which level holds, and texts that are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.ledger.overrides import InLedger, Override, OverrideLevel, altered, at_level, effective, texts_at
from sinks.model.changes import Key
from streaming.errors import LockstepError

NAMES = st.sampled_from(["topics", "lockstep.observe.rate", "my.size"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OVERRIDES = st.one_of(
    st.builds(Override, TEXTS),
    st.builds(Override, TEXTS, encoded=st.just(True)),
    st.builds(Override, TEXTS, reference=st.just(True)),
)
STEPS = st.lists(st.tuples(st.sampled_from(OverrideLevel), st.dictionaries(NAMES, st.none() | OVERRIDES, max_size=3)))


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_whatever_is_set_and_deleted_the_flows_own_holds_before_the_default_of_all_flows(
    steps: list[tuple[OverrideLevel, dict[str, Override | None]]],
) -> None:
    stored: InLedger = {}
    model: dict[OverrideLevel, dict[str, Override]] = {OverrideLevel.FLOW: {}, OverrideLevel.ALL: {}}
    for level, wanted in steps:
        stored = altered(stored, level, wanted)
        for name, override in wanted.items():
            if override is None:
                model[level].pop(name, None)
            else:
                model[level][name] = override
        assert {level: at_level(stored, level) for level in OverrideLevel} == model
        assert effective(stored) == {**model[OverrideLevel.ALL], **model[OverrideLevel.FLOW]}


def test_alteration_leaves_the_ledger_as_it_was_read_and_what_it_does_not_name() -> None:
    before: InLedger = {("flow", "topics"): Override("a").to_text(), ("of.a.later.version", "topics"): "?"}
    after = altered(before, OverrideLevel.ALL, {"groups": Override("g"), "topics": None})
    assert after == {**before, ("", "groups"): Override("g").to_text()}
    assert ("", "groups") not in before


@pytest.mark.parametrize("key", [("of.a.later.version", "topics"), ("flow",), ("flow", "topics", "of.a.later.version")])
def test_key_that_a_later_version_wrote_holds_nowhere(key: Key) -> None:
    assert effective({key: "?"}) == {}


def test_damaged_override_is_found_by_its_name_so_that_it_can_be_deleted() -> None:
    stored: InLedger = {("flow", "topics"): "t0ps3cr3t", ("", "groups"): Override("g").to_text()}
    assert texts_at(stored, OverrideLevel.FLOW) == {"topics": "t0ps3cr3t"}
    assert effective(altered(stored, OverrideLevel.FLOW, {"topics": None})) == {"groups": Override("g")}


@settings(max_examples=50, deadline=None)
@given(OVERRIDES)
def test_what_the_ledger_keeps_is_read_as_it_was_written(override: Override) -> None:
    assert Override.from_text("topics", override.to_text()) == override


def test_the_stored_form_says_whether_it_is_a_value_an_encoded_password_or_a_reference() -> None:
    assert Override("a,b").to_text() == '{"value":"a,b"}'
    assert Override("salt:x", encoded=True).to_text() == '{"encoded":"salt:x"}'
    assert Override("${env:X}", reference=True).to_text() == '{"reference":"${env:X}"}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t0ps3cr3t",
        '"t0ps3cr3t"',
        "null",
        "[1]",
        '["value"]',
        "{}",
        '{"value":7}',
        '{"value":null}',
        '{"value":["t0ps3cr3t"]}',
        '{"t0ps3cr3t":"x"}',
        '{"value":"t0ps3cr3t","encoded":"x"}',
        '{"value":"t0ps3cr3t"',
    ],
)
def test_damaged_text_is_an_error_that_names_the_property_and_repeats_nothing(text: str) -> None:
    with pytest.raises(LockstepError) as error:
        effective({("flow", "my.key"): text})
    assert str(error.value) == "the override of my.key in the ledger is damaged: delete it, or write it again"
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_repr_shows_no_value() -> None:
    assert repr(Override("t0ps3cr3t", encoded=True)) == "Override(encoded=True, reference=False)"
