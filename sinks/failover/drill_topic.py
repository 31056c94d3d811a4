"""The topic that a drill makes, with its copy: only what the drill made itself is taken away again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sinks.failover.fence_notes import own_fences
from sinks.failover.fence_rules import fence_acls
from sinks.failover.fencing import Fence
from sinks.failover.scene import Scene
from sinks.faults import RightsMissing
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from streaming.errors import LockstepError, WrongUsage

REMOVE = "delete it there: kafka-topics.sh --delete --topic {name}"


class LeftBehind(LockstepError):
    """Something that the drill made could not be taken away; the message says where it is, and how to remove it."""

    code = "LEFT_BEHIND"


@dataclass
class DrillTopic:
    """Of one drill. `topic`: on the source; `copy`: what MM2 calls it on the target."""

    scene: Scene
    topic: str
    copy: str
    _made: bool | None = field(default=False, init=False)
    """None: it was asked for, and no answer says what became of that."""
    _id: str | None = field(default=None, init=False)

    def check_absent(self) -> None:
        """Raises WrongUsage where one of the two may be there: a listing may come from a broker that lags behind."""
        for ports, name in ((self.scene.source, self.topic), (self.scene.target, self.copy)):
            if name in ports.cluster.list_topics() or name not in ports.cluster.confirmed_absent([name]):
                raise WrongUsage(
                    f"{name} is there already on {ports.alias}, or may not be seen there: a drill makes a topic of "
                    "its own, name another with --topic"
                )

    def make(self) -> None:
        """On the source, with one partition. Raises LockstepError where that is refused."""
        self._made = None
        try:
            fault = self.scene.source.cluster.create_topics({self.topic: TopicSpec(1)})[self.topic]
        except RightsMissing:
            self._made = False
            raise
        if fault is not None:
            self._made = None if fault.unknown else False
            said = fault.needing("CREATE", "TOPIC", self.topic)
            raise LockstepError(f"{self.topic} cannot be made on {self.scene.source.alias}: {said}")
        self._made = True

    def is_seen(self) -> bool:
        """Whether the source shows it; its id is remembered then."""
        self._id = self._id_now() if self._id is None else self._id
        return self._id is not None and self.topic in self.scene.source.cluster.list_topics()

    def _id_now(self) -> str | None:
        return self.scene.source.cluster.topic_ids([self.topic]).get(self.topic)

    def take_away(self) -> list[str]:
        """Deletes it, its copy and its fence, each whatever became of the others, where it was made.

        Returns what is left: on which cluster, why, and how to remove it.
        """
        if self._made is None:
            return [
                f"nobody can tell whether {self.topic} was made on {self.scene.source.alias}. If it is there, and is "
                f"not somebody else's, {REMOVE.format(name=self.topic)}"
            ]
        if not self._made:
            return []
        self.scene.say(f"takes {self.topic} and its fence away")
        return [*self._lift(), *self._delete_both()]

    def _lift(self) -> list[str]:
        scene, keys = self.scene, {acl.key for acl in fence_acls([self.topic])}
        if not keys & own_fences(scene.journal.ledger):
            return []
        try:
            with scene.other_ledgers() as others:
                # The topic goes as well: no other flow can rely on its fence, whatever a ledger would say.
                known = replace(others, unread={})
                Fence(scene.settings, scene.source.acls, scene.journal.ledger, known).lift(keys)
        except LockstepError as error:
            return [f"{error}: `lockstep unfence` takes the fence of {self.topic} on {scene.source.alias} away"]
        return []

    def _delete_both(self) -> list[str]:
        source, target = self.scene.source, self.scene.target
        try:
            if not self._is_own():
                return self._left_alone()
        except LockstepError as error:
            return [
                f"nobody can tell whether {self.topic} on {source.alias} is still what the drill made: {error}. It is "
                f"left, and so is {self.copy} on {target.alias}: {REMOVE.format(name=self.topic)}, then the copy"
            ]
        # The copy was absent before the drill, so that it is that of the drill's topic.
        return [*_delete(source, self.topic), *_delete(target, self.copy)]

    def _is_own(self) -> bool:
        """Whether the source's topic is the one that was made. One whose id was never seen was made a moment ago."""
        found = self._id_now()
        return found is not None and self._id in (None, found)

    def _left_alone(self) -> list[str]:
        source, target = self.scene.source, self.scene.target
        gone = bool(source.cluster.confirmed_absent([self.topic]))
        if gone and target.cluster.confirmed_absent([self.copy]):
            return []
        said = f"is gone from {source.alias}" if gone else f"on {source.alias} is not shown as the one the drill made"
        return [
            f"{self.topic} {said}: somebody else was there. What is there, and {self.copy} on {target.alias}, is left "
            f"alone; if that copy is nobody's, {REMOVE.format(name=self.copy)}"
        ]


def _delete(ports: ClusterPorts, name: str) -> list[str]:
    said: object = None
    try:
        if fault := ports.cluster.delete_topics([name])[name]:
            said = fault.needing("DELETE", "TOPIC", name)
    except LockstepError as error:
        said = error
    return [f"{name} is left on {ports.alias}: {said}; {REMOVE.format(name=name)}"] if said else []
