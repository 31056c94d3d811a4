"""What the rounds write down of what they found whole, for a cutover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sinks.kinds.offsets.exact_runs import Checked, ExactRuns, Stretch
from sinks.ledger.ledger_entries import Entry
from tests.sinks.verify.mirrored_log import Record
from tests.sinks.verify.verified_world import VerifiedWorld, records


def moved(found: list[Record], by: int) -> list[Record]:
    """The same records at other offsets."""
    return [replace(one, offset=one.offset + by) for one in found]


def written(made: VerifiedWorld) -> Sequence[Stretch]:
    """What the ledger says of `orders` after some rounds."""
    made.world.ledger().put({(Entry.PAUSED, ("acl",)): ""})
    made.restart()
    made.run(5)
    made.comparison.write_down(made.now)
    (text,) = made.world.ledger().values(Entry.EXACT_OFFSETS).values()
    return ExactRuns.parse(text).verified


def test_what_was_found_whole_is_written_down_for_a_cutover_also_where_records_are_there_twice() -> None:
    made = VerifiedWorld()
    twice = [*records(50), *moved(records(10, first=40), 10), *moved(records(50, first=50), 10)]
    made.put("orders", records(100), twice)
    made.sync("orders", (0, 0), (60, 70), (90, 100))
    assert written(made) == (Stretch(0, 100),)
    assert made.differences("orders") == {"DUPLICATE": 10}


def test_what_a_command_found_missing_meanwhile_is_not_written_over() -> None:
    made = VerifiedWorld()
    made.put("orders", records(100), records(100))
    made.sync("orders", (0, 0), (90, 90))
    assert written(made) == (Stretch(0, 100),)
    ((key, text),) = made.world.ledger().values(Entry.EXACT_OFFSETS).items()
    found = ExactRuns.parse(text).renewed([], 2, [Checked(Stretch(40, 50), whole=False)])
    made.world.ledger().put({(Entry.EXACT_OFFSETS, key): found.as_text()})
    made.put("orders", records(120), records(120))
    made.run()
    made.ledger.refresh()
    made.comparison.write_down(made.now)
    (text,) = made.world.ledger().values(Entry.EXACT_OFFSETS).values()
    assert ExactRuns.parse(text).verified == (Stretch(0, 40), Stretch(50, 120))


def test_what_lies_around_a_missing_record_is_not_written_down() -> None:
    made = VerifiedWorld()
    made.put("orders", records(100), [*records(50), *moved(records(49, first=51), -1)])
    made.sync("orders", (0, 0), (60, 59), (90, 89))
    assert not any(one.start <= 50 < one.end for one in written(made))
    assert made.differences("orders") == {"MISSING": 1}
