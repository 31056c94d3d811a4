"""Records that moved clients wrote to copies hide no loss once the flow mirrors again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.failover.commands import cutover, drain, fence, unfence
from sinks.failover.failing_back import failback, resume
from sinks.failover.predicted_loss import ANY_LOSS, predict
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.ledger.kept_divergences import MIRRORS_AGAIN
from sinks.ledger.kept_end_offsets import LatestSync
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.sinks.failover.scenes import Stage, look, stage

X0, COPY = TopicPartition("x", 0), TopicPartition("a.x", 0)


def watched() -> tuple[Stage, SourceEndOffsetStore]:
    """A flow whose job knows that all is copied. MM2 sends no offset-sync from then on."""
    built = stage()
    syncs = {where: LatestSync(9, 9) for where in built.here.logs}
    job = SourceEndOffsetStore(built.here, 5.0, beside=inline, syncs=lambda: dict(syncs))
    look(built, 1000.0, job)
    built.mirrors = False
    return built, job


def moved(built: Stage) -> None:
    """Clients write five records to a copy."""
    for number in range(5):
        built.there.logs[COPY].append(b"moved", b"%d" % number, 9000 + number)


def unfenced() -> tuple[Stage, SourceEndOffsetStore]:
    """One topic was drained, its clients moved, and the fence was lifted again."""
    built, job = watched()
    fence(built.scene(), ("x",))
    drain(built.scene())
    moved(built)
    unfence(built.scene())
    return built, job


def led_back() -> tuple[Stage, SourceEndOffsetStore]:
    built, job = watched()
    cutover(built.scene())
    moved(built)
    failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
    resume(built.scene(), typed="unknown", discard=ANY_LOSS)
    return built, job


@pytest.mark.parametrize("setting", [unfenced, led_back])
@pytest.mark.parametrize("copied", [0, 2])
def test_records_of_moved_clients_are_no_copies(
    setting: Callable[[], tuple[Stage, SourceEndOffsetStore]], copied: int
) -> None:
    built, job = setting()
    built.write("x", 0, 5)
    for record in built.here.logs[X0].records[10 : 10 + copied]:
        built.there.logs[COPY].append(record.key, record.value, record.timestamp)
    look(built, 1020.0, job)
    assert predict(built.scene(answers=False)).records == 5 - copied


def test_no_record_counts_as_copied_where_the_target_did_not_tell_the_copys_end() -> None:
    built, job = watched()
    fence(built.scene(), ("x",))
    drain(built.scene())
    moved(built)
    log = built.there.logs.pop(COPY)
    unfence(built.scene())
    built.there.logs[COPY] = log
    built.write("x", 0, 5)
    look(built, 1020.0, job)
    assert predict(built.scene(answers=False)).records == 5


def test_unreadable_ends_are_an_error_and_no_smaller_loss() -> None:
    built, _ = unfenced()
    built.ledger().put({(Entry.FAILOVER, (MIRRORS_AGAIN, "a.x")): "damaged"})
    with pytest.raises(LockstepError, match="where copies ended cannot be read"):
        predict(built.scene(answers=False))
