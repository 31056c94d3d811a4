"""Whether the source leads again: what the flow the other way round has in its own ledger, there. Writes nothing."""

from __future__ import annotations

from sinks.engine.ledger import Ledger
from sinks.engine.seal import Seal
from sinks.failover.record import FailoverRecord, NotNow
from sinks.failover.scene import Scene
from sinks.failover.states import ENDED, State
from sinks.failover.unplanned import TYPED_UNKNOWN
from sinks.faults import LedgerUntrusted, RightsMissing
from streaming.flow import Flow

LEADS = ENDED - {State.FAILING_OVER}
"""States of the flow the other way round in which its target has taken over."""


def check_source_leads(scene: Scene, typed: str | None) -> None:
    """Raises NotNow where the way back was not cut over since it was led through, or nobody can tell, unless that state
    is `typed` back."""
    flow = scene.settings.flow
    reverse = flow.reverse
    try:
        record, why = _record_of(scene, reverse), "it is not there"
    except (LedgerUntrusted, RightsMissing) as error:
        record, why = None, str(error)
    # It stays as it ended the last time that it led back, until it is led back itself.
    before = record is not None and record.begun.at < scene.journal.record.begun.at
    if record is not None and record.state in LEADS and not before:
        scene.say(f"{flow.source} leads again: {reverse.name} is {record.describe()}")
        return
    word = record.state.value if record else TYPED_UNKNOWN
    if typed == word:
        return
    if record is None:
        topic = scene.settings.internal.reverse_ledger
        said = f"nobody can tell whether {flow.source} leads again, by {topic} of {reverse.name} there: {why}"
    else:
        since = ", which is of an earlier time" if before else ""
        said = f"{reverse.name} is {record.describe()}{since}: {flow.target} still leads"
    raise NotNow(
        f"{said}. Once {flow.name} mirrors again, Lockstep and MM2 write on {flow.target} what {flow.source} has: run "
        f"`lockstep cutover` with the file of {reverse.name} first. If {flow.source} leads all the same, say "
        f"--yes {word}"
    )


def _record_of(scene: Scene, reverse: Flow) -> FailoverRecord | None:
    """None: it has no ledger. Raises LedgerUntrusted, RightsMissing, ClusterUnreachable."""
    seal = Seal(reverse.name, scene.settings.safety.ledger_secret)
    ledger = Ledger(scene.settings.internal.reverse_ledger, scene.source.cluster, None, None, seal=seal)
    return ledger.failover() if ledger.exists else None
