"""What a running job takes over without a restart: its file, overrides, reporters."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx

from app.local.jars import PROJECT
from app.local.waiting import wait_for
from sinks.ledger.ledger import Entry, Ledger
from tests.http_servers import answering_server
from tests.kafka.running_job.conftest import LOGGED_WITHIN, Stage
from tests.kafka.staging import create, wait_until_shown


def test_filter_that_is_changed_in_the_file_holds_without_a_restart(stage: Stage) -> None:
    """A file with a mistake changes nothing; `lockstep reload` says the mistake, and the audit topic what changed."""
    create(stage.source, "bills-reloaded", 1, {})
    before, sound = stage.job.pids, stage.config.read_text()
    stage.config.write_text(sound + "topics.exclude = orders.*\nlockstep.shard.topics = many\n")
    wait_for(lambda: stage.said("is not used, nothing changed") >= 1, LOGGED_WITHIN, "the mistake to be logged")
    create(stage.source, "orders-under-the-old-filter", 1, {})
    wait_until_shown(stage.target, "a.orders-under-the-old-filter", 1, {})
    stage.config.write_text(sound.replace("orders.*", "orders.*, bills.*"))
    wait_until_shown(stage.target, "a.bills-reloaded", 1, {})
    assert stage.job.pids == before
    answer = httpx.post(f"{stage.job.address}/reload", timeout=900)
    assert (answer.status_code, answer.json()) == (200, {"changed": [], "error": None})
    command = [sys.executable, "-m", "app.main", "audit", "-o", "json", "--config", str(stage.config)]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)
    settings = [event for event in json.loads(run.stdout)["events"] if event["kind"] == "setting"]
    assert [(event["key"], event["after"]) for event in settings] == [({"name": "topics"}, "orders.*, bills.*")]


def test_override_wins_over_the_file_at_once_and_the_file_holds_again_without_it(stage: Stage) -> None:
    """Kept in the flow's ledger, and audited; the file and the processes stay as they are."""
    before, file = stage.job.pids, stage.config.read_text()
    create(stage.source, "shop-overridden", 1, {})
    said = stage.configs("--alter", "--entity-name", "a->b", "--add-config", "topics=[orders.*,shop.*]")
    assert "topics: not set -> orders.*,shop.*" in said
    wait_until_shown(stage.target, "a.shop-overridden", 1, {})
    shown = stage.configs("--describe", "--entity-name", "a->b")
    assert "* override of the flow: orders.*,shop.*" in shown
    assert f"deleted here, it falls back to orders.*, bills.* ({stage.config}:" in shown
    stage.configs("--alter", "--entity-name", "a->b", "--delete-config", "topics")
    # The command does not wait for a job that is busy.
    assert httpx.post(f"{stage.job.address}/reload", timeout=900).json()["error"] is None
    for name in ("shop-left-alone", "orders-told-last"):
        create(stage.source, name, 1, {})
    wait_until_shown(stage.target, "a.orders-told-last", 1, {})
    assert "a.shop-left-alone" not in stage.target.list_topics()
    assert (stage.job.pids, stage.config.read_text()) == (before, file)


def test_default_of_all_flows_that_somebody_else_wrote_is_taken_over_at_the_next_comparison(stage: Stage) -> None:
    """As another machine would: straight into the ledger, without a word to the job."""
    writes = Ledger("lockstep-ledger.a.internal", stage.target, stage.target, 1)
    writes.put({(Entry.OVERRIDE, ("", "config.properties.exclude")): '{"value": "retention.ms"}'})
    assert httpx.post(f"{stage.job.address}/look", json={"wait_seconds": 60}, timeout=900).is_success
    wait_for(lambda: stage.said("changed: a->b.lockstep.config.properties.exclude") == 1, LOGGED_WITHIN, "the change")
    create(stage.source, "orders-overridden", 1, {"retention.ms": "1000", "segment.ms": "60000"})
    wait_until_shown(stage.target, "a.orders-overridden", 1, {"segment.ms": "60000"})
    stage.configs("--alter", "--entity-default", "--delete-config", "config.properties.exclude")
    wait_until_shown(stage.target, "a.orders-overridden", 1, {"retention.ms": "1000", "segment.ms": "60000"})


def test_reporter_begins_and_ends_with_the_line_that_names_it(stage: Stage) -> None:
    """It gets the job's metrics, once more when it ends, and then no more."""
    sound = stage.config.read_text()
    with answering_server("/t0ps3cr3t/") as gateway:
        lines = (
            "lockstep.metric.reporters = lockstep.reporters:PushGatewayReporter",
            f"lockstep.metric.push.url = {gateway.address}",
            "lockstep.metric.push.interval = 1 second",
        )
        stage.config.write_text("\n".join((sound, *lines, "")))
        wait_for(lambda: len(gateway.requests) >= 2, LOGGED_WITHIN, "two pushes")
        assert b"lockstep_batch_rows" in gateway.requests[0][3]
        stage.config.write_text(sound)
        answer = httpx.post(f"{stage.job.address}/reload", timeout=900)
        assert (answer.status_code, answer.json()["error"]) == (200, None)

        def is_silent() -> bool:
            pushes, batches = len(gateway.requests), stage.batches()
            wait_for(lambda: stage.batches() >= batches + 3, LOGGED_WITHIN, "three more batches")
            return len(gateway.requests) == pushes

        # The last push may be slower than the reload waits for it.
        wait_for(is_silent, LOGGED_WITHIN, "three batches without a push")
