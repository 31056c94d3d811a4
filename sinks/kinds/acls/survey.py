"""What of a flow's ACLs differs now: `survey_acls` reads both clusters, `compare_acls` plans. Neither writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import Sighting
from sinks.every_kind.listing import Listed
from sinks.flow_settings import AclRules, FlowSettings
from sinks.kafka.ports.acl_binding import EVERYONE, LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.acls import AclList, AclReader
from sinks.kinds.acls.patterns import SourceTopics, covers_any
from sinks.kinds.acls.rules import DesiredAcls, deletable, desired_acls, plan_acls
from sinks.kinds.topics.rules import is_replicated, may_be_foreign
from sinks.ledger.adoption import Alike
from sinks.ledger.fence_acls import could_be_fence, without_fences
from sinks.model.changes import Key, Kind
from sinks.model.plan import make_plan
from sinks.model.principals import PrincipalFilter
from streaming.message_words import number_of


@dataclass(frozen=True)
class ComparedAcls:
    """`principals`: name on the target by name on the source, of principals whose ACLs are synced. `staged`: ACLs that
    are held back. None: not observed."""

    comparison: Comparison
    principals: Mapping[str, str] | None = None
    staged: frozenset[AclBinding] | None = None


@dataclass(frozen=True)
class Fences:
    """Keys of the ACLs with which failovers deny writes: of this flow on the source, of its reverse on the target."""

    source: Collection[Key] = ()
    target: Collection[Key] = ()


def source_topics(settings: FlowSettings, listed: Listed) -> SourceTopics:
    """Returns what the rules must know of the source's topics."""
    return SourceTopics(
        flow=settings.flow,
        policy=settings.policy,
        replicates=lambda topic: is_replicated(settings, topic) and not may_be_foreign(settings, topic),
        remote=listed.desired.kept,
        names=listed.source.keys(),
        target=listed.target.keys(),
        ours=settings.internal.on_target,
        mm2s=settings.internal.mm2s_on_target,
    )


Translate = Callable[[AclList, FlowSettings, Listed], DesiredAcls]


def translate(bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
    """The source's ACLs in the target's terms."""
    return desired_acls(bindings, settings.acls, source_topics(settings, listed))


def principals_of(
    settings: FlowSettings, source: AclReader, listed: Listed, *, afresh: bool = False
) -> Mapping[str, str] | None:
    """Returns the principals whose ACLs would be synced; None if the source shows none. `afresh`: ask the source now.
    Raises as `survey_acls`."""
    bindings = AclList(source.describe()) if afresh else source.recent()
    if not (bindings and listed.source):
        return None
    return translate(bindings, settings, listed).principals


@dataclass(frozen=True)
class PrincipalsOfAcls:
    """Principals that the source's ACLs name: name on the target by name on the source. `all`: every one. `synced`:
    with synced ACLs. `held`: names on the target of principals that only the settings leave out."""

    all: Mapping[str, str]
    synced: Mapping[str, str]
    held: Collection[str]


def named_principals(
    settings: FlowSettings, source: AclReader, listed: Listed, asked: Collection[str]
) -> PrincipalsOfAcls | None:
    """Returns the principals of the source's ACLs, asked for now; None if it shows none. `asked`: principals of the
    target that may be held. Raises as `survey_acls`."""
    bindings, topics = source.describe(), source_topics(settings, listed)
    if not (bindings and listed.source):
        return None
    there = {one: settings.acls.mapping.map(one) for one in {acl.principal for acl in bindings}}
    synced = desired_acls(bindings, settings.acls, topics).principals
    # Whom the target has no ACL of (a person removed them there, say) the source may have all the same.
    held = {acl.principal for acl in held_by_source(bindings, settings.acls, topics, None, asked)}
    return PrincipalsOfAcls({one: name for one, name in there.items() if name is not None}, synced, held)


class KeptTranslation:
    """A `Translate` that returns its last answer again for the same arguments."""

    def __init__(self) -> None:
        self._asked: tuple[AclList, Listed] | None = None
        self._answer = DesiredAcls()

    def __call__(self, bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
        if self._asked is None or self._asked[0] is not bindings or self._asked[1] != listed:
            self._asked, self._answer = (bindings, listed), translate(bindings, settings, listed)
        return self._answer

    def forget(self) -> None:
        """Forget the last answer, because filters and mappings may have changed."""
        self._asked = None


@dataclass(frozen=True)
class BothSides:
    """ACLs of the source to sync and of the target, both without fences, and how many the source shows with them."""

    synced: AclList
    existing: AclList
    shown: int

    @property
    def fenced(self) -> int:
        """How many of the source's are fences."""
        return self.shown - len(self.synced)


def survey_acls(
    source: AclReader,
    target: AclReader,
    fences: Callable[[bool], Fences] = lambda again: Fences(),
    *,
    afresh: bool = False,
) -> BothSides:
    """Read the ACLs of both sides. `afresh`: ask the source now, to confirm a deletion. Raises ClusterUnreachable,
    NotSupported, RightsMissing.

    A fence of a failover on one cluster is neither created nor deleted on the other. If an ACL looks like a fence, the
    ledgers are read before the ACLs and after them. A fence that goes is forgotten last, and a fence that comes is
    remembered first.
    """
    before = fences(False)
    bindings, on_target = (AclList(source.describe()) if afresh else source.recent()), target.recent()
    unknown = any(could_be_fence(acl) for acl in (*bindings.denying, *on_target.denying))
    if unknown:
        # What was read before the ledgers were would show a fence that they have forgotten since.
        bindings, on_target = AclList(source.describe()), AclList(target.describe())
    after = fences(True) if unknown else before
    existing = without_fences(on_target, {*before.target, *after.target})
    return BothSides(without_fences(bindings, {*before.source, *after.source}), existing, len(bindings))


def compare_acls(
    settings: FlowSettings,
    both: BothSides,
    listed: Listed,
    owned: Collection[Key],
    translated: Translate = translate,
) -> ComparedAcls:
    """The plan for the kind `acl`. Pure."""
    desired, present = translated(both.synced, settings, listed), both.existing.keys
    plan = make_plan(
        settings.flow,
        plan_acls(desired, both.existing, deletable(owned, settings.acls), settings.acls.deletes),
        refused=desired.refusals(present),
        existing={Kind.ACL: len(present & set(owned))},
        skipped={f"{reason} ACLs": count for reason, count in _skipped(desired, both.fenced).items()},
        notes=desired.notes,
    )
    # A source that shows no topic shows no ACL of one either.
    shown, items = (both.shown, "ACL") if listed.source else (0, "topic")
    protected = set(owned) - deletable(owned, settings.acls)
    kept = protected | desired.withheld.keys()
    wanted = Wanted(Kind.ACL, {acl.key for acl in desired.wanted}, shown, items, kept=kept)
    there = {Kind.ACL: dict.fromkeys(present, "")}
    if owned and not shown:
        return ComparedAcls(Comparison(plan, there, wanted))
    found = Comparison(plan, there, wanted, alike=_alike(desired, present))
    return ComparedAcls(found, desired.principals, desired.staged)


def second_look_at_acls(
    settings: FlowSettings,
    source: AclReader,
    target: AclReader,
    listed: Listed,
    keys: Collection[Key],
    fences: Callable[[bool], Fences] = lambda again: Fences(),
) -> dict[Key, Sighting]:
    """Returns what the source now says of these ACLs of the target. Raises as `survey_acls`."""
    both, topics = survey_acls(source, target, fences, afresh=True), source_topics(settings, listed)
    if not (both.shown and listed.source):
        return {}
    desired = desired_acls(both.synced, settings.acls, topics)
    wanted = {acl.key for acl in desired.wanted} | desired.withheld.keys()
    principals = {AclBinding.from_key(key).principal for key in keys}
    # Another flow may hold such a right: it claims nothing that its own file left out.
    reading = {acl.principal for acl in both.existing if acl.resource_type == TOPIC and acl.key not in keys}
    held = held_by_source(both.synced, settings.acls, topics, both.existing, principals, reading)
    kept = {acl.key for acl in held}
    return {
        key: Sighting.WANTED if key in wanted else Sighting.LEFT_OUT if key in kept else Sighting.GONE for key in keys
    }


def _alike(desired: DesiredAcls, present: Collection[Key]) -> Alike:
    same = {acl.key for acl in desired.wanted}.intersection(present)
    return Alike(dict.fromkeys(same, ""), {key: why for key, why in desired.withheld.items() if key in present})


def _skipped(desired: DesiredAcls, fenced: int) -> Mapping[str, int]:
    return {**desired.skipped, "fence": fenced} if fenced else desired.skipped


# ACLs of the source that the settings leave out: by MM2's rules for ACLs, or by a filter. Pure.


def left_out(bindings: Collection[AclBinding], rules: AclRules, topics: SourceTopics) -> str:
    """Returns in words what `sync.full.acl.enabled` (KIP-965) would keep on the target besides; empty if it is on.

    ACLs that no mode keeps there are not among them: of the cluster, of topics that are not replicated, of excluded
    principals. `bindings`: all ACLs of the source.
    """
    if rules.full:
        return ""
    now = replace(rules, stage_writes=False)
    full = desired_acls(bindings, replace(now, full=True), topics).wanted
    missing = full - desired_acls(bindings, now, topics).wanted
    if not missing:
        return ""
    counts = Counter(map(_named, missing))
    named = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{number_of(len(missing), 'ACL')} that applications have ({named}): sync.full.acl.enabled=true keeps them"


def _named(acl: AclBinding) -> str:
    if acl.resource_type != TOPIC:
        return f"of a {acl.resource_type.lower().replace('_', ' ')}"
    return acl.operation if acl.pattern_type == LITERAL else "prefixed"


def held_by_source(
    bindings: Collection[AclBinding],
    rules: AclRules,
    topics: SourceTopics,
    existing: AbstractSet[AclBinding] | None,
    principals: Collection[str],
    reading: Collection[str] = (),
) -> set[AclBinding]:
    """Returns keys of ACLs that the target would have without any filter, because the source has them. Looks only at
    these principals of the target and at `User:*`, since all of tens of thousands take long.

    `existing`: count only ACLs that the target has, and ACLs of topics that have a copy there; None: count all. An
    operator may have removed the ACL alone.

    An ACL of groups counts if an ACL of topics of the same principal does. An application that reads no replicated
    topic needs none. `reading`: principals that keep an ACL of topics on the target in any case.
    """
    if EVERYONE not in principals:
        chosen = {*principals, EVERYONE}
        mapped = {one: rules.mapping.map(one) for one in {acl.principal for acl in bindings}}
        bindings = [acl for acl in bindings if mapped[acl.principal] in chosen]
    unfiltered = replace(rules, principals=PrincipalFilter())
    everything = replace(topics, replicates=lambda topic: not topics.comes_back(topic))
    copies = sorted(topics.target)
    kept = {
        acl
        for one in (unfiltered, replace(unfiltered, full=True, stage_writes=False))
        for acl in desired_acls(bindings, one, everything).wanted
        if existing is None or acl in existing or (acl.resource_type == TOPIC and covers_any(acl, copies))
    }
    readers = {acl.principal for acl in kept if acl.resource_type == TOPIC}.union(reading)
    everyone = EVERYONE in readers
    if readers:
        # Every reader may use the groups that User:* may.
        readers.add(EVERYONE)
    return {acl for acl in kept if acl.resource_type == TOPIC or everyone or acl.principal in readers}
