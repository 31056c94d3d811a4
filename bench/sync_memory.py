"""What a job takes that reads a large offset-syncs topic at its first start: `python -m bench.sync_memory`.

The topics exist and are empty. The bench measures how syncs come from the source through Spark into Python. It does not
measure what is kept of them, which is bounded by partition.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from bench.job_file import job_of
from bench.many_records import PlainRecord, produce_all
from bench.pass_cost import peak_memory
from bench.scenario import Meter
from bench.topic_changes import create_topics, topic_name
from bench.verify_load import SYNCS
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

TOPICS: Final = 50
COMPACTED: Final = {"cleanup.policy": "compact"}
WITHIN: Final = 1800.0


def main(
    millions: Annotated[str, typer.Option(help="Syncs in the topic, in millions, one start each.")] = "1,14",
) -> None:
    """Prints a JSON document for each start: seconds from it until topics are compared, groups too, and the stream has
    brought all syncs; the most resident MiB of each process."""
    with tempfile.TemporaryDirectory(prefix="lockstep-syncs-") as folder, ExitStack() as stack:
        root = Path(folder)
        a, b = (stack.enter_context(LocalCluster(alias, root / alias)) for alias in ("a", "b"))
        create_topics(a.bootstrap, TOPICS)
        admin = AdminClient({"bootstrap.servers": a.bootstrap})
        admin.create_topics([NewTopic(SYNCS, 1, 1, config=COMPACTED)])[SYNCS].result()
        written = 0
        for size in sorted(int(one) * 1_000_000 for one in millions.split(",")):
            produce_all(a.bootstrap, SYNCS, _syncs(range(written, size)))
            written = size
            found = _first_read({"a": a.bootstrap, "b": b.bootstrap}, root / str(size), size)
            sys.stdout.write(json.dumps(found, indent=2) + "\n")
            sys.stdout.flush()


def _syncs(numbers: range) -> Iterator[PlainRecord]:
    """Syncs with these numbers, as MM2 would write them for topics that move together."""
    for number in numbers:
        where = TopicPartition(topic_name(number % TOPICS), 0)
        yield PlainRecord(*encode_offset_sync(OffsetSync(where, number, number)))


def _first_read(clusters: dict[str, str], folder: Path, size: int) -> dict[str, Any]:
    own = {"lockstep.sync.group.offsets.enabled": "true"}
    began = time.monotonic()
    with job_of(mirror_properties(clusters, ["a->b"], **own), folder) as job, peak_memory(job.pids) as peak:
        wait_for(lambda: "topic" in _compared(job), WITHIN, "topics to be compared")
        seconds = {"topics": time.monotonic() - began}
        wait_for(lambda: "group-offset" in _compared(job), WITHIN, "groups to be compared")
        seconds["groups"] = time.monotonic() - began
        meter = Meter(job)
        wait_for(lambda: _read(meter) >= size, WITHIN, f"{size} syncs to come with the stream")
        seconds["stream"] = time.monotonic() - began
    mebibytes = {name: most >> 20 for name, most in peak.items()}
    return {"syncs": size, "seconds": {name: round(one, 1) for name, one in seconds.items()}, "mebibytes": mebibytes}


def _compared(job: LocalJob) -> set[str]:
    """The kinds that were compared."""
    job.check()
    kinds = [flow["kinds"] for flow in job.status().get("flows", [])]
    return {name for one in kinds for name, kind in one.items() if kind["last_success"]}


def _read(meter: Meter) -> float:
    return sum(one.value for one in meter.samples() if one.name == "lockstep_query_rows_total")


if __name__ == "__main__":
    typer.run(main)
