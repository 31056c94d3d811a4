"""Entries that lie apart, by what they are about, are the ones that were put, however they are read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from sinks.ledger.ledger_entries import OF_A_KIND, Entry, EntryKey, KeptEntries, Remembered

K = TypeVar("K")

WHEN = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
entry_keys = st.tuples(
    st.sampled_from([Entry.OWNED, Entry.INTENT, Entry.PAUSED, Entry.CLUSTER_ID]),
    st.lists(st.sampled_from(["topic", "acl", "x", ""]), min_size=1, max_size=3).map(tuple),
)


@given(st.lists(st.tuples(entry_keys, st.none() | st.text(max_size=2))))
def test_entries_are_found_by_key_by_entry_and_by_kind_as_they_were_put(
    steps: list[tuple[EntryKey, str | None]],
) -> None:
    plain: dict[EntryKey, str] = {}
    kept = KeptEntries()
    for place, value in steps:
        if value is None:
            plain.pop(place, None)
            kept.pop(place, None)
        else:
            plain[place], kept[place] = value, Remembered(value, WHEN)
    assert values(kept) == plain
    assert len(kept) == len(plain)
    for entry in Entry:
        of_entry = {key: value for (one, key), value in plain.items() if one is entry}
        assert values(kept.of(entry)) == of_entry
        if entry in OF_A_KIND:
            of_acls = {key[1:]: value for key, value in of_entry.items() if key[0] == "acl"}
            assert values(kept.of(entry, "acl")) == of_acls


def values(kept: Mapping[K, Remembered]) -> dict[K, str]:
    """Without since when."""
    return {key: found.value for key, found in kept.items()}
