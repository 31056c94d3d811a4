"""Ctrl-C while brokers create topics for `apply`: what they created is Lockstep's, and nothing is left in the air."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import TopicSpec
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.conftest import Clusters
from tests.kafka.staging import client_of, write_properties
from tests.silent_clusters import LOCKSTEP

SOURCE = "cut"
LEDGER = f"lockstep-ledger.{SOURCE}.internal"
TOPICS = [f"cut-short-{number:03}" for number in range(510)]
"""More than leave with one request."""

BEGINS_WITHIN, ENDS_WITHIN, SHOWN_WITHIN = 180.0, 180.0, 180.0


def test_topics_that_were_being_created_when_apply_was_interrupted_are_owned(
    clusters: Clusters, tmp_path: Path
) -> None:
    config = write_properties(tmp_path, clusters.a, clusters.b, "cut-short-.*", source=SOURCE)
    words = [*LOCKSTEP, "apply", "--yes", "--config", str(config)]
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        try:
            source.create_topics(dict.fromkeys(TOPICS, TopicSpec(1, 1)))
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
                intended = Ledger(LEDGER, target, None, 1)

                def intends() -> bool:
                    intended.refresh()
                    return bool(intended.values(Entry.INTENT))

                wait_for(intends, BEGINS_WITHIN, "apply to write")
                run.send_signal(signal.SIGINT)
                run.communicate(timeout=ENDS_WITHIN)
            ledger = Ledger(LEDGER, target, None, 1)
            assert run.returncode == 130
            assert ledger.owned(Kind.TOPIC)

            def is_all_there() -> bool:
                there = {(name,) for name in target.list_topics() if name.startswith(f"{SOURCE}.")}
                return there == ledger.owned(Kind.TOPIC)

            # A broker shows what was created a moment late.
            wait_for(is_all_there, SHOWN_WITHIN, "the topics that Lockstep owns to be those that are there")
            assert ledger.values(Entry.INTENT) == {}
        finally:
            source.delete_topics(TOPICS)
            target.delete_topics([*(f"{SOURCE}.{topic}" for topic in TOPICS), LEDGER])
