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

from streaming.offsets import Histories

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
    """Measures and prints `{"syncs_per_second": …, "bytes_per_partition": …}`."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--syncs", type=int, default=1_000_000)
    arguments.add_argument("--partitions", type=int, default=10_000)
    options = arguments.parse_args()
    seconds = seconds_to_take(list(syncs(options.syncs, options.partitions)))
    document = {
        "syncs": options.syncs,
        "partitions": options.partitions,
        "syncs_per_second": round(options.syncs / seconds),
        "bytes_per_partition": round(bytes_a_partition(options.syncs, options.partitions)),
    }
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
