"""What another hand makes long after an intent is not Lockstep's, however the wall clock jumps and writes fail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ClusterUnreachable, ItemFault
from sinks.ledger.ledger import Ledger
from sinks.ledger.ownership import FRESH
from sinks.model.changes import ALLOW, Change, Kind, Outcome
from streaming.errors import LockstepError
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON
from tests.sinks.memory_flow import Clock

TOPIC = "lockstep-ledger.a.internal"
READ = ("TOPIC", "a.t", "LITERAL", "User:x", "*", "READ", ALLOW)
CREATE = Change(Kind.ACL, READ, None, ALLOW)
TIMED_OUT = ItemFault("REQUEST_TIMED_OUT", "", retriable=True, unknown=True)
LONGEST = int(FRESH.total_seconds())


class Losing(MemoryCluster):
    """Whose ledger is not written, or written without an acknowledgement."""

    trouble: str = ""

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        offsets = super().append_log(topic, records) if self.trouble != "lost" else []
        if self.trouble:
            raise ClusterUnreachable("no acknowledgement came")
        return offsets


steps = st.lists(
    st.tuples(
        st.integers(0, LONGEST),
        st.integers(-3 * LONGEST, 3 * LONGEST),
        st.sampled_from(["try", "look", "read"]),
        st.sampled_from(["", "", "lost", "late"]),
    ),
    max_size=12,
)
"""Seconds that pass, seconds by which the wall clock jumps besides, what the job does, and how writes fail then."""


@given(steps, st.integers(-3 * LONGEST, 3 * LONGEST))
def test_what_another_hand_makes_long_after_the_last_attempt_is_not_ours(
    done: list[tuple[int, int, str, str]], last: int
) -> None:
    clock, jumped = Clock(), timedelta()

    def now() -> datetime:
        return NOON + timedelta(seconds=clock.now) + jumped

    cluster = Losing("b")
    ledger = Ledger(TOPIC, cluster, cluster, 1, now, clock=clock)
    for passed, by, what, cluster.trouble in done:
        clock.now += passed
        jumped += timedelta(seconds=by)
        try:
            if what == "try":
                ledger.intend([CREATE])
                ledger.record([Outcome(CREATE, TIMED_OUT)])
            elif what == "look":
                ledger.recognize(Kind.ACL, {})
            else:
                ledger.refresh()
        except LockstepError:
            continue
    cluster.trouble = ""
    ledger.refresh()
    clock.now += LONGEST + 1
    jumped += timedelta(seconds=last)
    ledger.refresh()
    ledger.recognize(Kind.ACL, {READ: ""})
    assert ledger.owned(Kind.ACL) == set()
