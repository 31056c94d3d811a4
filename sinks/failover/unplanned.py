"""A failover without waiting for the source: what it loses is predicted, agreed to, and kept, before the flow ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from sinks.failover.arrival import Arrival, pairs_of, sharing, unlisted
from sinks.failover.divergence import Divergence, arrivals_at_takeover, as_at_takeover, keep_divergences
from sinks.failover.fence_rules import check_names, fenced_topics
from sinks.failover.kept_end_offsets import end_offsets_by_topic
from sinks.failover.predicted_losses import predicted
from sinks.failover.record import FailoverRecord, NotNow
from sinks.failover.scene import Scene
from sinks.failover.source_end_offsets import EndOffsets, kept_end_offsets
from sinks.failover.states import Command, State
from sinks.kinds.offsets.stored_histories import stored_histories
from streaming.mm2.records import TopicPartition
from streaming.number_of import number_of

TYPED_UNKNOWN = "unknown"
"""What is typed back where nobody can tell."""


@dataclass(frozen=True)
class Prediction:
    """What is lost by partition of the source. `known`: the ends of the source, seen at `at_ms` (ms since the epoch;
    None: now, for the source answers). `remote`: names on the target. `is_known`: whether anything is known at all."""

    arrivals: Mapping[TopicPartition, Arrival]
    known: EndOffsets
    remote: Mapping[str, str]
    at_ms: int | None
    is_known: bool = True

    @property
    def records(self) -> int | None:
        """In all, the most that it can be of what was seen; None: nobody can tell."""
        if not self.is_known or any(one.problem for one in self.arrivals.values()):
            return None
        return sum(one.behind.records for one in self.arrivals.values() if one.behind)

    @property
    def exact(self) -> bool:
        """Whether it is certain, as it never is without the source."""
        return self.is_known and all(one.behind is not None and one.behind.exact for one in self.arrivals.values())

    @property
    def typed(self) -> str:
        """What whoever agrees types back."""
        return TYPED_UNKNOWN if self.records is None else str(self.records)


def predict(scene: Scene, *, source_answers: bool, topics: Collection[str] = ()) -> Prediction:
    """What the source has that the target has not, as far as can be known now. Writes nothing.

    `topics`: of a source that answers; none: all that producers write, for a failover ends the flow of them all.
    """
    return _counted(scene, topics) if source_answers else _remembered(scene)


def _counted(scene: Scene, wanted: Collection[str]) -> Prediction:
    listed = scene.listed()
    shared, remote = listed.desired.shared, {**listed.desired.remote, **listed.desired.shared}
    topics = fenced_topics(scene.settings, remote, scene.aliases, wanted)
    pairs = pairs_of(remote, listed.source, topics)
    told = {where: copy for where, copy in pairs.items() if where.topic not in shared}
    mixed = sharing({topic: shared[topic] for topic in topics if topic in shared}, listed.source)
    with scene.readers() as (source, target):
        found = arrivals_at_takeover(scene.journal.ledger, source, target, told)
        ends = source.latest(list(pairs)).items
    counts = {where.topic: listed.source[where.topic] for where in pairs}
    found |= unlisted(listed.source, topics) | mixed
    return Prediction(found, end_offsets_by_topic(ends, counts), remote, None)


def _remembered(scene: Scene) -> Prediction:
    ledger = scene.journal.ledger
    kept = kept_end_offsets(ledger)
    if not kept:
        return Prediction({}, {}, {}, None, is_known=False)
    policy, alias = scene.settings.policy, scene.settings.flow.source
    remote = {topic: policy.format_remote_topic(alias, topic) for topic in kept}
    # What a transaction of MM2's that it did not end brought is taken back.
    with closing(scene.target.records("read_committed")) as target:
        # Where clients have moved already, what they wrote there is no record of the source.
        found = predicted(kept, dict(stored_histories(ledger)), as_at_takeover(ledger, target), remote)
    names = Counter(remote.values())
    shared = {topic: name for topic, name in remote.items() if names[name] > 1}
    found |= sharing(shared, {topic: len(kept[topic].ends) for topic in shared})
    ends = {topic: one.ends for topic, one in kept.items()}
    return Prediction(found, ends, remote, min(one.at_ms for one in kept.values()))


def keep_divergence(scene: Scene, prediction: Prediction) -> None:
    """Keeps where the target's copies end now, and what was predicted; what was kept before stays."""
    found: dict[str, Divergence] = {}
    with closing(scene.target.records("read_uncommitted")) as target:
        copies = {
            TopicPartition(prediction.remote[topic], number): TopicPartition(topic, number)
            for topic, ends in prediction.known.items()
            for number in range(len(ends))
        }
        logs = target.ends(list(copies)).items
    for topic, known in prediction.known.items():
        name = prediction.remote[topic]
        lost = [prediction.arrivals.get(TopicPartition(topic, number)) for number in range(len(known))]
        found[topic] = Divergence(
            name,
            [
                logs[where].end if (where := TopicPartition(name, number)) in logs else -1
                for number in range(len(known))
            ],
            list(known),
            [one.behind.records if one and one.behind else -1 for one in lost],
            all(one is not None and one.behind is not None and one.behind.exact for one in lost),
        )
    keep_divergences(scene.journal.ledger, found)


def failover(
    scene: Scene,
    *,
    source_answers: bool,
    accept_loss: int | None,
    agreed: Callable[[Prediction], None],
    take_over: bool = False,
) -> FailoverRecord:
    """Ends the flow although records may be missing. `agreed` raises unless somebody agrees to the prediction.

    A source that answers needs `accept_loss`, no smaller than the count. Raises NotNow, LockstepError.
    """
    if done := scene.journal.has_done(State.FAILED_OVER):
        return done
    known = scene.journal.record
    scene.journal.check(Command.FAIL_OVER, take_over=take_over)
    if known.doing is not Command.FAIL_OVER:
        if source_answers:
            check_names(scene.settings, scene.listed().desired.shared, scene.aliases)
        prediction = predict(scene, source_answers=source_answers)
        _check_loss(scene, prediction, source_answers, accept_loss)
        agreed(prediction)
    scene.journal.begin(Command.FAIL_OVER, take_over=take_over)
    return scene.journal.run(scene.steps())


def _check_loss(scene: Scene, prediction: Prediction, source_answers: bool, accept_loss: int | None) -> None:
    source, records = scene.settings.flow.source, prediction.records
    if accept_loss is None:
        if source_answers:
            raise NotNow(
                f"{source} answers, so that nothing need be lost: `lockstep cutover` loses no record. To fail over all "
                f"the same, say --accept-loss with at least {prediction.typed}"
            )
        return
    if records is None or records > accept_loss:
        lost = "nobody can tell how many records" if records is None else number_of(records, "record")
        raise NotNow(f"{lost} would be lost, and --accept-loss is {accept_loss}")
