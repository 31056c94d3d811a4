"""Which pieces of which partitions the running job compares in a round, within its budget of bytes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sinks.kinds.offsets.history import Pair
from sinks.verify.byte_budget import ByteBudget
from sinks.verify.partition_progress import Cut, PartitionProgress
from sinks.verify.pieces import Piece
from streaming.mm2.records import TopicPartition


class SelectedPiece(NamedTuple):
    """A piece of a partition that is compared now."""

    progress: PartitionProgress
    piece: Piece
    of_tail: bool


def select_pieces(
    partitions: Sequence[PartitionProgress],
    of_tail: bool,
    cut: Callable[[PartitionProgress], Cut],
    newest: Callable[[TopicPartition], Pair | None],
    compacted: Collection[str],
    budget: ByteBudget,
    now: float,
) -> list[SelectedPiece]:
    """As many as the budget allows, in their order. `newest`: the newest offset-sync of a partition.

    `compacted`: topics that are compared whole, from a place to the end, since cleaners take what is older.
    """
    left = budget.level(now)
    found: list[SelectedPiece] = []
    for one in partitions:
        if left <= 0:
            break
        topic = one.where.topic
        most, largest = budget.offsets(topic, left), budget.largest(topic)
        windows = cut(one)
        if topic in compacted:
            piece = _compacted(one, of_tail, windows, newest(one.where), largest)
        elif of_tail:
            piece = one.next_of_tail(windows, newest(one.where), most, largest)
        else:
            piece = one.next_of_history(windows, most, largest)
        if piece is not None:
            found.append(SelectedPiece(one, piece, of_tail))
            left -= budget.size(topic, piece.offsets)
    return found


def _compacted(one: PartitionProgress, of_tail: bool, cut: Cut, newest: Pair | None, largest: int) -> Piece | None:
    if one.history_end is None:
        one.begin(newest)
    track = one.tail if of_tail else one.history
    start = one.start_of(track)
    windows = tuple(cut(start, track.at))
    if not windows:
        return None
    piece = Piece(windows)
    if piece.offsets <= largest:
        return piece
    one.leave_out(windows[0].upstream, windows[-1].upstream_end)
    if not of_tail and one.tail.at is not None:
        track.at = one.tail.at
    return None
