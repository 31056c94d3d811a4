"""`lockstep pause` and `lockstep resume`: stop and start one kind of a flow. A pause outlives restarts."""

from __future__ import annotations

from app.cli.failures import unaudited_at_worst
from app.cli.output import complain, print_line
from app.cli.running import ask
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, KindArgument, loaded
from app.settings import Settings
from app.wiring import audit, both_clusters, ledger_on_target
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind
from streaming.errors import LockstepError

FOLLOWS_WITHIN = 10.0
"""Seconds to wait until a running job has adopted the pause."""


def pause(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Stops one kind of a flow until `lockstep resume`, even after restarts. Meanwhile its drift is unknown."""
    _remember(loaded(config, flow), kind, "")


def resume(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Starts a paused kind again."""
    _remember(loaded(config, flow), kind, None)


def _remember(settings: Settings, kind: Kind, value: str | None) -> None:
    for one in settings.flows:
        with both_clusters(settings, one) as clusters:
            opened = ledger_on_target(one, clusters)
            before = opened.get(Entry.PAUSED, kind.value)
            opened.put({(Entry.PAUSED, (kind.value,)): value})
            print_line(f"{one.flow.name}: {kind} is {'active' if value is None else 'paused'}")
            if before != value:
                with unaudited_at_worst(one.flow.name):
                    audit(one, clusters.target).record_pause(one.flow, kind, paused=value is not None)
    _notify_job(settings)


def _notify_job(settings: Settings) -> None:
    """Asks the job for a full comparison, which reads the ledger first. Waits for the end of a pass under way."""
    interval = max(one.pace.full_comparison_interval for one in settings.flows)
    body = {"flows": [one.flow.name for one in settings.flows], "wait_seconds": FOLLOWS_WITHIN}
    try:
        followed = ask(settings.job, "POST", "/look", FOLLOWS_WITHIN * len(settings.flows) + 5, body)["looked"]
    except LockstepError:
        complain(f"no job answers here; one that runs elsewhere follows within {interval:g} s")
        return
    for name in (name for name, done in followed.items() if not done):
        complain(f"{name}: the running job was asked, and has not followed within {FOLLOWS_WITHIN:g} s")
