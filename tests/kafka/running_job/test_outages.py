"""What becomes of a running job whose clusters go away, and how it ends."""

from __future__ import annotations

import os
import signal
from typing import Any

from app.local.waiting import wait_for
from tests.kafka.running_job.conftest import LOGGED_WITHIN, Stage
from tests.kafka.staging import create, family_of, running, wait_until_gone, wait_until_shown

DEAD_WITHIN = 300.0
"""Seconds until the status says that a cluster is down which refuses connections, or a target that is silent."""

BACK_WITHIN = 300.0
"""Seconds; tries are up to 30 s apart, and the first ones still meet a broker that starts."""

ENDS_WITHIN = 300.0
"""Seconds from SIGTERM: one batch of a trigger, and Spark's own end on a machine that is busy."""


def test_flow_whose_target_was_away_at_the_start_works_with_its_overrides_only(stage: Stage) -> None:
    """What the ledger says cannot be known then, and the file alone would say something else."""
    create(stage.source, "late-overridden", 1, {})
    stage.configs("--alter", "--entity-name", "a->b", "--add-config", "topics=[late.*]")
    wait_until_shown(stage.target, "a.late-overridden", 1, {})
    stage.job.stop()
    stage.b.stop()
    for name in ("late-waited-for", "orders-not-now"):
        create(stage.source, name, 1, {})
    waits = stage.said("waits until the 1 overrides in its ledger are in force")
    stage.job.start()
    wait_for(lambda: bool(stage.job.status()), LOGGED_WITHIN, "the job to start")
    wait_for(lambda: stage.flow()["state"] == "ERROR", LOGGED_WITHIN, "the status to say ERROR")
    stage.b.start()
    wait_for(lambda: "a.late-waited-for" in stage.target.list_topics(), BACK_WITHIN, "the flow to work")
    assert "a.orders-not-now" not in stage.target.list_topics()
    assert stage.said("waits until the 1 overrides in its ledger are in force") > waits
    stage.configs("--alter", "--entity-name", "a->b", "--delete-config", "topics")
    wait_until_shown(stage.target, "a.orders-not-now", 1, {})


def test_without_its_source_the_job_waits_and_goes_on_when_it_is_back(stage: Stage) -> None:
    """The status says ERROR and why; the job neither dies nor spins; what changed after the outage arrives."""
    lines = stage.said("^")
    stage.a.kill()

    def names_source() -> bool:
        flow = stage.flow()
        return flow["state"] == "ERROR" and "cluster a" in str(flow["reason"])

    wait_for(names_source, DEAD_WITHIN, "the status to say ERROR, and which cluster it is")
    batches = stage.batches()
    wait_for(lambda: stage.batches() >= batches + 3, LOGGED_WITHIN, "batches to go on without the source")
    stage.job.check()
    assert stage.said("the query broke off") <= 2
    assert stage.said("^") - lines < 40, stage.log.read_text()[-5000:]
    stage.a.start()
    wait_for(lambda: stage.flow()["state"] != "ERROR", BACK_WITHIN, "the flow to go on")
    create(stage.source, "orders-after-the-outage", 1, {"retention.ms": "1000"})
    wait_until_shown(stage.target, "a.orders-after-the-outage", 1, {"retention.ms": "1000"})


def test_a_target_that_is_silent_is_noticed_in_time_and_goes_on_by_itself(stage: Stage) -> None:
    """It takes connections, and answers nothing: the broker is stopped as by a machine that hangs."""
    wait_for(lambda: stage.flow()["state"] != "ERROR", BACK_WITHIN, "the flow to work")
    (broker,) = stage.b.pids

    def failed() -> dict[str, Any]:
        flow = stage.flow()
        return flow if flow["state"] == "ERROR" else {}

    os.kill(broker, signal.SIGSTOP)
    try:
        said = wait_for(failed, DEAD_WITHIN, "the status to say ERROR")
    finally:
        os.kill(broker, signal.SIGCONT)
    assert (said["error"]["code"], said["error"]["message"]) == ("CLUSTER_UNREACHABLE", said["reason"])
    wait_for(lambda: stage.flow()["state"] != "ERROR", BACK_WITHIN, "the flow to go on")


def test_sigterm_ends_the_job_after_its_batch_and_leaves_no_process(stage: Stage) -> None:
    """Exit code 0; spark-submit, the JVM and the driver are gone with it."""
    # A batch that began while the target was silent waits for it as long as Spark's consumer does.
    batches = stage.batches()
    wait_for(lambda: stage.batches() > batches, LOGGED_WITHIN, "a batch to come to its end after the outage")
    processes, ended = family_of(stage.job.pids[0]), stage.said("SIGTERM: ending after the running batch")
    assert len(running(processes)) >= 3
    processes[0].terminate()
    wait_for(lambda: not running(processes[:1]), ENDS_WITHIN, "spark-submit.sh to end")
    assert stage.job.stop() == 0
    wait_until_gone(processes)
    assert stage.said("Traceback") == 0
    assert stage.said("SIGTERM: ending after the running batch") == ended + 1
