"""The job that compares records beside its passes: what differs, what stands still, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.local.local_job import LocalJob
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.settings import load
from app.wiring import both_clusters, ledger
from sinks.ledger.ledger import Entry
from tests.conftest import Clusters
from tests.kafka.faulty_copies import COUNT, faulty_copies, properties, records, send, topic_of, write
from tests.kafka.staging import flow_of

SOON = 180.0
PREFIX = "watched"
SOUND, DROPPED = topic_of(PREFIX, "nothing"), topic_of(PREFIX, "dropped")


@dataclass(frozen=True)
class Watched:
    """The job over a sound topic and one that lacks a record."""

    clusters: Clusters
    config: Path
    job: LocalJob

    def verify(self) -> dict[str, Any]:
        """What its status says of records; empty while it says nothing."""
        return dict(flow_of(self.job).get("verify") or {})


@pytest.fixture(scope="module")
def watched(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder, port = tmp_path_factory.mktemp("watched"), free_ports(1)[0]
    copies = faulty_copies()
    write(clusters.a, clusters.b, PREFIX, {fault: copies[fault] for fault in ("nothing", "dropped")})
    config = properties(clusters.a, clusters.b, PREFIX, folder)
    more = {"lockstep.http.port": str(port), "lockstep.verify.enabled": "true", "sync.topic.acls.enabled": "false"}
    config.write_text(config.read_text() + "".join(f"{name} = {value}\n" for name, value in more.items()))
    job = LocalJob(config, port, folder / "job.log")
    job.start()
    yield Watched(clusters, config, job)
    job.stop()


def test_what_differs_is_in_status_metrics_and_api(watched: Watched) -> None:
    both = {"DIFFERENT": 1, "VERIFIED": 1}
    wait_for(lambda: watched.verify().get("partitions") == both, SOON, "all records to be compared")
    found = watched.verify()
    assert (found["state"], found["history_compared"]) == ("RUNNING", 1.0)
    assert found["topics"] == [{"topic": DROPPED, "kind": "MISSING", "count": 1}]
    assert found["verified_through"] is not None
    metrics = httpx.get(f"{watched.job.address}/metrics", timeout=60).text
    line = f'lockstep_verify_differences{{kind="MISSING",source="copied-a",target="copied-b",topic="{DROPPED}"}} 1.0'
    assert line in metrics
    assert "lockstep_verified_through_timestamp_seconds{" in metrics
    (flow,) = httpx.get(f"{watched.job.address}/api/v1/flows", timeout=60).json()["flows"]
    assert ("records", "1 record MISSING") in {(one["about"], one["reason"]) for one in flow["readiness"]["findings"]}


def test_a_partition_that_stands_still_is_said(watched: Watched) -> None:

    def stalled() -> bool:
        send(watched.clusters.a, {SOUND: records(1)})
        return bool(watched.verify().get("stalled"))

    wait_for(stalled, SOON, "the partition to be STALLED")
    assert watched.verify()["stalled"] == [f"{SOUND}-0"]


def test_it_ends_with_the_job_and_leaves_exact_offsets(watched: Watched) -> None:
    wait_for(lambda: watched.verify().get("verified_through"), SOON, "records to be compared")
    assert watched.job.stop() == 0
    with closing(load(watched.config, environ={})) as settings:
        flow = settings.flows[0]
        with both_clusters(settings, flow) as clusters:
            kept = ledger(flow, clusters.target, to_write=False).values(Entry.EXACT_OFFSETS)
    assert (SOUND, "0") in kept
    assert f"[0,0,{COUNT}]" in kept[SOUND, "0"]
