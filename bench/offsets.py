"""How many offset-syncs a second the histories take in, and how many bytes each partition takes.

The syncs come round after round for each partition, `offset.lag.max` apart, some after a hole in the source and a few
after a restart, as MM2 emits them. One process, one core. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Iterator

from sinks.kinds.offsets.histories import Histories
from sinks.kinds.offsets.memory import OffsetMemory
from streaming.flow import Flow
from streaming.hints import Summary, hints_of

LAG_MAX = 100
PARTITIONS_A_TOPIC = 10


def syncs(count: int, partitions: int) -> Iterator[tuple[str, int, int, int, int]]:
    """Topic, partition, upstream offset, downstream offset, position; the same in each run."""
    chance = random.Random(5)
    ends = [(0, 0)] * partitions
    topics = [f"orders-{number // PARTITIONS_A_TOPIC}" for number in range(partitions)]
    for position in range(count):
        number = position % partitions
        upstream, downstream = ends[number]
        yield topics[number], number % PARTITIONS_A_TOPIC, upstream, downstream, position
        ahead = LAG_MAX if chance.random() < 0.7 else chance.randrange(1, LAG_MAX)
        back = chance.randrange(ahead, 20 * LAG_MAX) if chance.random() < 0.001 else 0
        ends[number] = (max(0, upstream + ahead - back), downstream + ahead)


def seconds_to_take(rows: list[tuple[str, int, int, int, int]]) -> float:
    """Wall-clock seconds for all of them."""
    histories = Histories()
    started = time.perf_counter()
    for row in rows:
        histories.take(*row)
    return time.perf_counter() - started


def seconds_to_hear(rows: list[tuple[str, int, int, int, int]]) -> float:
    """Wall-clock seconds from what Spark sums up of a batch to the histories of the flow."""
    numbers: dict[str, list[int]] = {}
    for topic, partition, upstream, downstream, position in rows:
        numbers.setdefault(topic, []).extend((partition, upstream, downstream, position))
    told = [
        Summary("offset-sync", "a", "b", False, "syncs", topic, None, 1, None, 1, of) for topic, of in numbers.items()
    ]
    memory, started = OffsetMemory(), time.perf_counter()
    memory.take_in(hints_of(told, 1).syncs[Flow("a", "b")], [])
    memory.drain()
    return time.perf_counter() - started


def bytes_a_partition(count: int, partitions: int) -> float:
    """Memory of the histories after so many syncs, measured with tracemalloc."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        histories = Histories()
        for row in syncs(count, partitions):
            histories.take(*row)
        # The source of the syncs is gone by now; what is left is the histories.
        return (tracemalloc.get_traced_memory()[0] - before) / len(histories)
    finally:
        tracemalloc.stop()


def main() -> None:
    """Measures and prints `{"syncs_per_second": …, "seconds_from_batch_to_histories": …, "bytes_per_partition": …}`."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--syncs", type=int, default=1_000_000)
    arguments.add_argument("--partitions", type=int, default=10_000)
    options = arguments.parse_args()
    rows = list(syncs(options.syncs, options.partitions))
    seconds, heard = seconds_to_take(rows), seconds_to_hear(rows)
    document = {
        "syncs": options.syncs,
        "partitions": options.partitions,
        "syncs_per_second": round(options.syncs / seconds),
        "seconds_from_batch_to_histories": round(heard, 1),
        "bytes_per_partition": round(bytes_a_partition(options.syncs, options.partitions)),
    }
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
