"""What Java prints of committed offsets is read whole, or not at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.jvm.committed_text import names_of, offsets_of
from streaming.mm2.records import TopicPartition

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
PLACES = st.builds(TopicPartition, TOPICS, st.integers(0, 999))
GROUPS = st.lists(st.dictionaries(PLACES, st.integers(0, 2**63 - 1), max_size=4), max_size=5)


def printed(groups: list[dict[TopicPartition, int]], metadata: str = "") -> str:
    """As `AbstractCollection.toString`, `AbstractMap.toString` and `OffsetAndMetadata.toString` do."""
    maps = [
        ", ".join(
            f"{where.topic}-{where.partition}=OffsetAndMetadata{{offset={offset}, leaderEpoch=null, "
            f"metadata='{metadata}'}}"
            for where, offset in group.items()
        )
        for group in groups
    ]
    return "[" + ", ".join(f"{{{text}}}" for text in maps) + "]"


@given(GROUPS)
def test_offsets_of_all_groups_come_back_as_they_were_printed(groups: list[dict[TopicPartition, int]]) -> None:
    assert offsets_of(printed(groups), len(groups)) == groups


def test_a_partition_without_an_offset_is_left_out() -> None:
    text = "[{t-0=null, t-1=OffsetAndMetadata{offset=7, leaderEpoch=3, metadata='at noon'}}]"
    assert offsets_of(text, 1) == [{TopicPartition("t", 1): 7}]


@given(st.text(alphabet="'{}[], =-0a", max_size=12))
def test_metadata_is_never_taken_for_an_offset(metadata: str) -> None:
    where = TopicPartition("t", 0)
    assert offsets_of(printed([{where: 5}, {}], metadata), 2) in (None, [{where: 5}, {}])


def test_metadata_says_nothing_of_another_group() -> None:
    where = TopicPartition("t", 0)
    forged = "'}}, {t-1=OffsetAndMetadata{offset=9, leaderEpoch=null, metadata='"
    assert offsets_of(printed([{where: 5}, {where: 6}], forged), 2) is None


def test_another_number_of_groups_than_was_asked_for_is_not_understood() -> None:
    assert offsets_of(printed([{}]), 2) is None


def test_names_count_only_if_they_are_those_that_were_asked_for() -> None:
    assert names_of("[b, a]", frozenset("ab")) == ["b", "a"]
    assert names_of("[a, b]", frozenset({"a, b"})) is None
    assert names_of("[]", frozenset()) == []
