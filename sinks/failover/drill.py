"""Runs a failover drill on a topic of its own, between the real clusters: compares predictions with measurements.

The drill writes records and lets MM2 copy them. Halfway it predicts the loss of a failover, and counts the real loss by
content. It fences the topic and checks that the fence stops its own writes. It waits until MM2 has copied all records.
For two groups it compares where they would continue with what they would read there. The flow's own state stays as it
is. The drill deletes the topic at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sinks.failover.cut_reader import AsItWas, all_records
from sinks.failover.fence_notes import own_fences
from sinks.failover.fencing import Fence, NoAuthorizer
from sinks.failover.scene import Scene
from sinks.failover.uncopied_records import arrivals
from sinks.failover.unreplicated import not_among
from sinks.faults import NoAnswer, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import Offsets
from sinks.kafka.ports.record_reader import Record, RecordReader
from sinks.kinds.desired_topics import OWN, is_replicated
from sinks.kinds.offsets.direction import GroupOffset
from sinks.ledger.fence_acls import fence_acls
from streaming.errors import LockstepError, WrongUsage
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import topic_name_fault

DRILL_PREFIX = "failover-drill-"
"""Prefix of the names of a drill's topic and groups, unless another name is given."""

DOES = {
    "first copy": "writes {records} records to {topic}, and waits until {copier} has copied them",
    "fence": "denies all writes to {topic}",
    "drain": "waits until {copier} has copied the other {records} records",
    "offsets": "compares where two groups would continue with what they would read there",
}
"""What a drill's longer steps do, in words for the operator."""

GroupRows = Callable[[Collection[str]], Sequence[GroupOffset]]
"""Returns where these groups would continue on the target, as `lockstep offsets` shows it."""


@dataclass(frozen=True, slots=True)
class GroupDrill:
    """How many records a group reads twice or skips on the target. `predicted`: the most that it reads twice."""

    group: str
    predicted: int | None
    read_twice: int
    skipped: int

    @property
    def agrees(self) -> bool:
        """Whether the group skips no record, and reads no more records twice than predicted."""
        return not self.skipped and self.predicted is not None and self.read_twice <= self.predicted


@dataclass
class DrillResult:
    """The result of a drill."""

    topic: str
    predicted: int = 0
    """Records that a failover halfway would have lost, as predicted."""
    measured: int = 0
    """The same, as counted by content."""
    fenced: bool | None = None
    """Whether the fence stopped the drill's own principal. None if the source has no authorizer."""
    groups: list[GroupDrill] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step took."""

    @property
    def agrees(self) -> bool:
        return self.predicted == self.measured and all(group.agrees for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "agrees": self.agrees,
            "loss": {"predicted": self.predicted, "measured": self.measured},
            "fence_stops_this_principal": self.fenced,
            "groups": [
                {"group": one.group, "bound": one.predicted, "read_twice": one.read_twice, "skipped": one.skipped}
                for one in self.groups
            ],
            "seconds": {name: round(seconds, 2) for name, seconds in self.seconds.items()},
        }


@dataclass(frozen=True)
class Drill:
    """One drill. `records`: how many it writes in each of two halves. `within`: time limit of each wait, in seconds."""

    scene: Scene
    topic: str
    group_rows: GroupRows
    records: int = 1000
    within: float = 900.0

    @property
    def here(self) -> TopicPartition:
        """The topic's partition on the source."""
        return TopicPartition(self.topic, 0)

    @property
    def there(self) -> TopicPartition:
        """The copy of that partition on the target."""
        settings = self.scene.settings
        return TopicPartition(settings.policy.format_remote_topic(settings.flow.source, self.topic), 0)

    def check(self) -> DrillTopic:
        """Checks that the drill can begin, and returns the topic that it would create. Writes nothing. Raises
        WrongUsage, FenceCopied, LockstepError."""
        scene = self.scene
        check_drill_name(scene.settings, self.topic)
        own = DrillTopic(scene, self.topic, self.there.topic)
        own.check_absent()
        # A source without an authorizer is drilled without a fence.
        with suppress(NoAuthorizer):
            Fence(scene).check()
        return own

    def steps(self) -> dict[str, str]:
        label = self.scene.settings.copier.label
        return {name: text.format(topic=self.topic, records=self.records, copier=label) for name, text in DOES.items()}

    def run(self) -> DrillResult:
        """Runs the drill. Deletes the topic and its fence in any case. Raises LockstepError."""
        scene, own = self.scene, self.check()
        result = DrillResult(self.topic)
        try:
            self._run(own, result)
        except LockstepError as error:
            scene.journal.note_drill({"topic": self.topic, "agrees": False, "error": str(error)})
            raise
        scene.journal.note_drill(result.as_json())
        return result

    def _run(self, own: DrillTopic, result: DrillResult) -> None:
        try:
            self._measure(own, result)
        except BaseException:
            for line in own.take_away():
                self.scene.say(line)
            raise
        if left := own.take_away():
            said = "as predicted" if result.agrees else "not as predicted"
            raise LeftBehind(f"the drill measured {said}, but could not remove everything: {'; '.join(left)}")

    def _measure(self, own: DrillTopic, result: DrillResult) -> None:
        scene = self.scene
        with scene.readers() as (source, target):
            self._timed(result, "first copy", lambda: self._first_half(own, source, target))
            self._predict(result, source, target)
            self._timed(result, "fence", lambda: self._fence(result))
            self._timed(result, "drain", lambda: self._await_copies(source, target))
            self._timed(result, "offsets", lambda: self._groups(result, source, target))

    def _first_half(self, own: DrillTopic, source: RecordReader, target: RecordReader) -> None:
        own.make()
        self._wait(own.is_seen, f"{self.topic} to exist")
        self._write(0)
        copy = self.there.topic
        self._wait(lambda: copy in self.scene.target.cluster.list_topics(), f"the copy {copy} to exist")
        self._await_copies(source, target)

    def _write(self, half: int) -> None:
        numbers = range(half * self.records, (half + 1) * self.records)
        self.scene.source.cluster.append_log(self.topic, [(b"%d" % number, b"drill") for number in numbers])

    def _predict(self, result: DrillResult, source: RecordReader, target: RecordReader) -> None:
        middle, end = self.records // 2, self.records
        names = self.groups
        committed = {names[0]: {self.here: middle}, names[1]: {self.here: end}}
        self._wait(lambda: self._commits(committed), "the offsets of its groups to be committed")
        self._write(1)
        seen = target.readable([self.there]).items[self.there].end
        cut = AsItWas(target, {self.there: seen})
        (found,) = arrivals(source, cut, {self.here: self.there}).values()
        if found.behind is None:
            raise LockstepError(f"how many records of {self.topic} are missing is unknown: {found.problem}")
        result.predicted = found.behind.records
        there = all_records(target, {self.there: 0}, {self.there: seen})[self.there] if seen else []
        result.measured = len(not_among(all_records(source, {self.here: 0})[self.here], there))

    def _commits(self, offsets: Mapping[str, Offsets]) -> bool:
        """Commits offsets of the drill's groups on the source. Returns False if a coordinator is not ready yet.

        Raises LockstepError for any other fault, because a drill without groups would prove nothing about offsets."""
        source, is_done = self.scene.source, True
        for group, faults in source.groups.commit(offsets).items():
            for fault in filter(None, faults.values()):
                if not fault.retriable:
                    said = fault.needing("READ", "GROUP", group)
                    raise LockstepError(f"the offset of {group} cannot be committed on {source.alias}: {said}")
                is_done = False
        return is_done

    def _fence(self, result: DrillResult) -> None:
        scene = self.scene
        try:
            with scene.other_ledgers() as others:
                # The topic is new: no other flow can have fenced it, whatever a ledger would say.
                Fence(scene, replace(others, unread={})).deny([self.topic])
        except NoAuthorizer as error:
            scene.say(str(error))
            return
        wanted = set(fence_acls([self.topic]))
        self._wait(lambda: wanted <= set(scene.source.acls.describe()), "the source to show the fence")
        try:
            scene.source.cluster.append_log(self.topic, [(b"after the fence", b"drill")])
            result.fenced = False
        except NoAnswer:
            # Why the write failed is unknown.
            raise
        except LockstepError:
            result.fenced = True

    def _await_copies(self, source: RecordReader, target: RecordReader) -> None:
        def arrived() -> bool:
            return all(one.arrived for one in arrivals(source, target, {self.here: self.there}).values())

        label = self.scene.settings.copier.label
        self._wait(arrived, f"{label} to copy {self.topic}: MM2 looks for topics every refresh.topics.interval.seconds")

    def _groups(self, result: DrillResult, source: RecordReader, target: RecordReader) -> None:
        rows = [row for row in self.group_rows(self.groups) if row.where == self.there]
        for row in rows:
            wanted = all_records(source, {self.here: row.at})[self.here]
            at = row.goes_on_at
            got: list[Record] = all_records(target, {self.there: at})[self.there] if at is not None else []
            twice, skipped = len(not_among(got, wanted)), len(not_among(wanted, got))
            result.groups.append(GroupDrill(row.group, row.error_bound, twice, skipped))

    @property
    def groups(self) -> tuple[str, str]:
        """The two groups whose offsets the drill commits."""
        return f"{self.topic}-middle", f"{self.topic}-end"

    def _timed(self, result: DrillResult, name: str, step: Callable[[], None]) -> None:
        self.scene.say(f"{name}: {self.steps()[name]}")
        began = self.scene.waiting.clock()
        step()
        result.seconds[name] = self.scene.waiting.clock() - began
        self.scene.say(f"{name}: {result.seconds[name]:.1f} s")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        advice = ". If that takes longer here, run the drill again with a longer --within"
        self.scene.wait_until(condition, self.within, what, advice)


# The topic that a drill creates, and its copy. The drill deletes only what it created.


REMOVE = "delete it there: kafka-topics.sh --delete --topic {name}"


class LeftBehind(LockstepError):
    """The drill could not delete all that it created. The message says what is left, where, and how to remove it."""

    code = "LEFT_BEHIND"
    remedy = (
        "remove what the message names, as the administrator of that cluster; `lockstep drill --dry-run` then shows "
        "whether another drill could begin"
    )


@dataclass
class DrillTopic:
    """The topic of one drill. `topic`: its name on the source. `copy`: the name of its copy on the target."""

    scene: Scene
    topic: str
    copy: str
    _made: bool | None = field(default=False, init=False)
    """Whether the topic was created. None: the request was sent, but its outcome is unknown."""
    _id: str | None = field(default=None, init=False)

    def check_absent(self) -> None:
        """Raises WrongUsage if the topic or its copy may exist. A listing alone is no proof: its broker may lag."""
        for ports, name in ((self.scene.source, self.topic), (self.scene.target, self.copy)):
            if name in ports.cluster.list_topics() or name not in ports.cluster.confirmed_absent([name]):
                raise WrongUsage(
                    f"{name} exists on {ports.alias} already, or this principal may not see it. A drill creates a "
                    "topic of its own: name another one with --topic"
                )

    def make(self) -> None:
        """Creates the topic on the source, with one partition. Raises LockstepError if the source refuses it."""
        self._made = None
        try:
            fault = self.scene.source.cluster.create_topics({self.topic: TopicSpec(1)})[self.topic]
        except RightsMissing:
            self._made = False
            raise
        if fault is not None:
            self._made = None if fault.unknown else False
            said = fault.needing("CREATE", "TOPIC", self.topic)
            raise LockstepError(f"{self.topic} cannot be created on {self.scene.source.alias}: {said}")
        self._made = True

    def is_seen(self) -> bool:
        """Whether the source lists the topic. Remembers the topic's id for its deletion."""
        self._id = self._id_now() if self._id is None else self._id
        return self._id is not None and self.topic in self.scene.source.cluster.list_topics()

    def _id_now(self) -> str | None:
        return self.scene.source.cluster.topic_ids([self.topic]).get(self.topic)

    def take_away(self) -> list[str]:
        """Deletes the fence, the topic and its copy, if the drill created them. If one fails, the others still go.

        Returns a sentence for each that is left: on which cluster, why, and how to remove it.
        """
        if self._made is None:
            return [
                f"it is unknown whether {self.topic} was created on {self.scene.source.alias}. If it exists, and no "
                f"other client created it, {REMOVE.format(name=self.topic)}"
            ]
        if not self._made:
            return []
        self.scene.say(f"deletes {self.topic} and its fence")
        return [*self._lift(), *self._delete_both()]

    def _lift(self) -> list[str]:
        scene, keys = self.scene, {acl.key for acl in fence_acls([self.topic])}
        if not keys & own_fences(scene.journal.ledger):
            return []
        try:
            with scene.other_ledgers() as others:
                # The topic goes as well: no other flow can rely on its fence, whatever a ledger would say.
                Fence(scene, replace(others, unread={})).lift(keys)
        except LockstepError as error:
            return [f"{error}. `lockstep unfence` lifts the fence of {self.topic} on {scene.source.alias}"]
        return []

    def _delete_both(self) -> list[str]:
        source, target = self.scene.source, self.scene.target
        try:
            if not self._is_own():
                return self._left_alone()
        except LockstepError as error:
            return [
                f"it is unknown whether {self.topic} on {source.alias} is still the drill's topic: {error}. The drill "
                f"leaves it, and {self.copy} on {target.alias}: {REMOVE.format(name=self.topic)}, then the copy"
            ]
        # Before the drill the copy was absent, so it is the copy of the drill's topic.
        return [*_delete(source, self.topic, self._id), *_delete(target, self.copy)]

    def _is_own(self) -> bool:
        """Whether the source's topic has the id of the one that the drill created, or that id was never seen."""
        found = self._id_now()
        return found is not None and self._id in (None, found)

    def _left_alone(self) -> list[str]:
        source, target = self.scene.source, self.scene.target
        gone = bool(source.cluster.confirmed_absent([self.topic]))
        if gone and target.cluster.confirmed_absent([self.copy]):
            return []
        said = (
            f"is gone from {source.alias}" if gone else f"on {source.alias} does not show the id of the drill's topic"
        )
        return [
            f"{self.topic} {said}: another client may have replaced it. The drill leaves that topic and {self.copy} on "
            f"{target.alias}; if no client uses that copy, {REMOVE.format(name=self.copy)}"
        ]


def _delete(ports: ClusterPorts, name: str, topic_id: str | None = None) -> list[str]:
    said: object = None
    try:
        if fault := ports.cluster.delete_topics([name], {name: topic_id or ""})[name]:
            said = fault.needing("DELETE", "TOPIC", name)
    except LockstepError as error:
        said = error
    return [f"{name} is left on {ports.alias}: {said}; {REMOVE.format(name=name)}"] if said else []


# Checks the name of a drill's topic.


def check_drill_name(settings: FlowSettings, topic: str) -> None:
    """Raises WrongUsage if the name, or its copy's, is invalid in Kafka, or belongs to Kafka, MM2 or Lockstep. Also if
    the flow does not replicate such a topic."""
    remote = settings.policy.format_remote_topic(settings.flow.source, topic)
    reason = _taken(settings, topic)
    if reason is None and not is_replicated(settings, topic):
        reason = f"is not replicated by {settings.flow.name}: name another, which `topics` matches"
    if reason is None and (of_copy := _taken(settings, remote)):
        reason = f"its copy would be {remote}, which {of_copy}"
    if reason is not None:
        raise WrongUsage(f"--topic {topic}: {reason}")


def _taken(settings: FlowSettings, topic: str) -> str | None:
    """Returns why a drill's topic may not have this name on either cluster; None if it may."""
    internal = settings.internal
    if fault := topic_name_fault(topic):
        return fault.said
    if topic.startswith(OWN) or topic in (*internal.on_target, internal.reverse_ledger):
        return "is a topic of Lockstep's own"
    if topic.startswith("__"):
        return "is a topic of Kafka's own"
    of_mm2 = topic in (internal.heartbeats, internal.checkpoints, internal.offset_syncs)
    if of_mm2 or settings.policy.is_internal_topic(topic) or settings.policy.is_heartbeats_topic(topic):
        return "is a topic of MM2's own"
    return None
