"""Translates an ACL's pattern of topics to the target, and tells what it covers there. Pure.

A prefix and the wildcard can be translated if the replication policy puts the same text, the *front*, before every
name. It is `a.` under the default policy, and empty under the identity policy. Lockstep asks the policy for it.

| pattern on the source | front `a.`           | no front      | a policy that puts none before every name    |
|-----------------------|----------------------|---------------|----------------------------------------------|
| literal `orders`      | literal `a.orders`   | `orders`      | literal, what the policy says                |
| prefix `ord`          | prefix `a.ord`       | prefix `ord`  | refused                                      |
| wildcard `*`          | prefix `a.`          | wildcard `*`  | refused                                      |

Under the identity policy most wildcards and short prefixes also cover Kafka's or Lockstep's own topics on the target
(`own_topics`). A replicated topic without the front in its name (`heartbeats` under the identity policy is
`a.heartbeats`) gets its own literal ACL beside each prefix that covers it on the source.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sinks.kafka.ports.acl_binding import LITERAL, PREFIXED, WILDCARD, AclBinding
from streaming.flow import Flow
from streaming.message_words import first_names, number_of
from streaming.mm2.replication_policy import ReplicationPolicy, is_cycle

PROBES = ("t", "t0", "orders.x-y_Z")
"""Names that Lockstep has a policy rename to find its front."""

LAST = "\U0010ffff"
"""Sorts after every character that a name may have."""

Pattern = tuple[str, str]
"""A resource's name and its pattern type."""


@dataclass(frozen=True)
class SourceTopics:
    """The topics of the source, and the functions that tell which are replicated under which name."""

    flow: Flow
    policy: ReplicationPolicy
    replicates: Callable[[str], bool]
    """MM2's `shouldReplicateTopic`; the topic need not exist."""
    remote: Mapping[str, str]
    """Remote name by upstream name, of replicated topics."""
    names: Collection[str]
    """Names of all topics of the source."""
    target: Collection[str] = ()
    """Names of the target's topics."""
    ours: Collection[str] = ()
    """Lockstep's topics on the target, of all flows of the file."""
    mm2s: Collection[str] = ()
    """MM2's internal topics on the target, of all flows of the file."""

    def rename(self, topic: str) -> str:
        """Returns the name on the target of a topic of the source."""
        return self.policy.format_remote_topic(self.flow.source, topic)

    def comes_back(self, topic: str) -> bool:
        """Whether the topic came from the target. Its name would grow with each replication."""
        return is_cycle(self.policy, topic, self.flow.target)


def is_wildcard(binding: AclBinding) -> bool:
    return binding.resource_name == WILDCARD and binding.pattern_type == LITERAL


def prefix_of(binding: AclBinding) -> str | None:
    """Returns the prefix of the names that a pattern covers: "" for the wildcard; None for a literal name."""
    if is_wildcard(binding):
        return ""
    return binding.resource_name if binding.pattern_type == PREFIXED else None


class TopicPatterns:
    """Answers questions about the patterns of one survey, each in logarithmic time of the number of topics."""

    def __init__(self, topics: SourceTopics) -> None:
        self._topics = topics
        self._names = sorted(topics.names)
        self._replicated = sorted(topics.remote)
        self._foreign = sorted(set(topics.target).difference(topics.remote.values()))

    @cached_property
    def front(self) -> str | None:
        return front_of(self._topics.rename)

    @cached_property
    def _stray(self) -> list[str]:
        return [name for name in self._replicated if self._topics.remote[name] != f"{self.front}{name}"]

    def is_replicated(self, prefix: str) -> bool:
        """Whether a prefix covers a replicated topic, or would cover a new one that MM2 replicates.

        It asks the topic filter about the prefix with one more letter. Topics that begin with `b.` on the source came
        from b and are not replicated back.
        """
        return len(_covered(self._replicated, prefix)) > 0 or self._topics.replicates(f"{prefix}t")

    def translated(self, prefix: str) -> list[Pattern]:
        """Returns the patterns on the target, by the table above; none if the policy has no front."""
        if self.front is None:
            return []
        remote = f"{self.front}{prefix}"
        if not remote:
            return [(WILDCARD, LITERAL)]
        stray = [self._topics.remote[self._stray[index]] for index in _covered(self._stray, prefix)]
        return [(remote, PREFIXED), *((name, LITERAL) for name in stray if not name.startswith(remote))]

    def notes(self, prefix: str) -> list[str]:
        """Returns notes about a prefix that covers topics that are not replicated, on the source or on the target."""
        return [note for note in (self._note(prefix), self._note_of_target(prefix)) if note]

    def _note_of_target(self, prefix: str) -> str | None:
        translated = self.translated(prefix)
        if not translated:
            return None
        name, pattern_type = translated[0]
        others = [self._foreign[at] for at in _covered(self._foreign, name if pattern_type == PREFIXED else "")]
        if not others:
            return None
        count = number_of(len(others), "topic")
        source = self._topics.flow.source
        return (
            f"on the target, {pattern_type} {name} also covers {count} that MM2 did not replicate from {source}: "
            f"{first_names(others, 3)}"
        )

    def _note(self, prefix: str) -> str | None:
        replicated, covered = (len(_covered(names, prefix)) for names in (self._replicated, self._names))
        if not 0 < replicated < covered or self.front is None:
            return None
        named = f"the prefix {prefix}" if prefix else f"the wildcard {WILDCARD}"
        remote, pattern_type = self.translated(prefix)[0]
        return (
            f"{named} covers {replicated} replicated topics and {covered - replicated} that are not; "
            f"on the target it is {pattern_type} {remote}"
        )


def front_of(rename: Callable[[str], str]) -> str | None:
    """Returns the text that the policy puts before every name; None if it renames in another way."""
    renamed = {probe: rename(probe) for probe in PROBES}
    fronts = {there.removesuffix(probe) if there.endswith(probe) else None for probe, there in renamed.items()}
    return fronts.pop() if len(fronts) == 1 else None


def covers_any(binding: AclBinding, names: Sequence[str]) -> bool:
    """Whether a pattern covers any of these topics. `names`: sorted."""
    prefix = prefix_of(binding)
    if prefix is not None:
        return len(_covered(names, prefix)) > 0
    at = bisect_left(names, binding.resource_name)
    return at < len(names) and names[at] == binding.resource_name


def _covered(names: Sequence[str], prefix: str) -> range:
    """Returns the range of sorted names that begin with the prefix."""
    return range(bisect_left(names, prefix), bisect_left(names, f"{prefix}{LAST}"))
