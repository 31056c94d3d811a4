"""Observe, desire, plan for ACLs: what of one flow differs now. Reads both clusters, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sinks.engine.adoption import Alike
from sinks.engine.claims import Claim
from sinks.engine.model import Key, Kind
from sinks.engine.plan import Plan, Unobserved, make_plan
from sinks.failover.fence_rules import could_be_fence
from sinks.failover.known_fences import without_fences
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclList, AclReader
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.rules import DesiredAcls, deletable, desired_acls, plan_acls
from sinks.kinds.listing import Listed
from sinks.kinds.topics.rules import is_replicated


@dataclass(frozen=True)
class AclSurvey:
    """`principals`: of those whose ACLs are synced, the name on the source to that on the target; None: not seen.

    `present`: all that the target has. `staged`: what is held back there; None: not seen. `alike`: what the target has
    just as the source has it.
    """

    plan: Plan
    principals: Mapping[str, str] | None = None
    present: frozenset[Key] = frozenset()
    staged: frozenset[AclBinding] | None = None
    alike: Callable[[], Alike] = Alike


@dataclass(frozen=True)
class Fences:
    """Keys of the ACLs with which failovers deny writes: of this flow on the source, of its reverse on the target."""

    source: Collection[Key] = ()
    target: Collection[Key] = ()


def source_topics(settings: FlowSettings, listed: Listed) -> SourceTopics:
    """What the rules must know of the source's topics."""
    return SourceTopics(
        flow=settings.flow,
        policy=settings.policy,
        replicates=lambda topic: is_replicated(settings, topic),
        remote=listed.desired.remote,
        names=listed.source.keys(),
        target=listed.target.keys(),
        ours=settings.internal.on_target,
        mm2s=settings.internal.mm2s_on_target,
    )


Translate = Callable[[AclList, FlowSettings, Listed], DesiredAcls]


def translate(bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
    """The source's ACLs in the target's terms."""
    return desired_acls(bindings, settings.acls, source_topics(settings, listed))


def principals_of(settings: FlowSettings, source: AclReader, listed: Listed) -> Mapping[str, str] | None:
    """Those whose ACLs would be synced; None where the source shows none. Raises as `survey_acls`."""
    bindings = source.recent()
    if not (bindings and listed.source):
        return None
    return translate(bindings, settings, listed).principals


class KeptTranslation:
    """A `Translate` that goes on with its last answer where it is asked for the same again."""

    def __init__(self) -> None:
        self._asked: tuple[AclList, Listed] | None = None
        self._answer = DesiredAcls()

    def __call__(self, bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
        if self._asked is None or self._asked[0] is not bindings or self._asked[1] != listed:
            self._asked, self._answer = (bindings, listed), translate(bindings, settings, listed)
        return self._answer

    def forget(self) -> None:
        """The next answer is a new one: filters and mappings may be others than before."""
        self._asked = None


def survey_acls(
    settings: FlowSettings,
    source: AclReader,
    target: AclReader,
    listed: Listed,
    owned: Collection[Key],
    claim: Claim,
    fences: Callable[[bool], Fences] = lambda again: Fences(),
    translated: Translate = translate,
) -> AclSurvey:
    """The plan for the kind `acl`. Raises ClusterUnreachable, NotSupported, RightsMissing.

    What a failover denies on one cluster (`fences`) is neither made nor taken away on the other. Ledgers are read for
    it only where an ACL looks like a fence: before the ACLs are read (what is known by then counts, too, for a fence
    that goes is forgotten last) and after, for one that comes is remembered first.
    """
    before = fences(False)
    bindings, on_target = source.recent(), target.recent()
    unknown = any(could_be_fence(acl) for acl in (*bindings.denying, *on_target.denying))
    if unknown:
        # What was read before the ledgers were would show a fence that they have forgotten since.
        bindings, on_target = AclList(source.describe()), AclList(target.describe())
    after = fences(True) if unknown else before
    existing = without_fences(on_target, {*before.target, *after.target})
    synced = without_fences(bindings, {*before.source, *after.source})
    desired = translated(synced, settings, listed)
    # A source that shows no ACL at all, or no topic, is taken for one that could not be seen.
    blank = bool(owned) and not (bindings and listed.source)
    reason = f"{settings.flow.source} shows no {'ACL' if listed.source else 'topic'}: none of the ACLs is deleted"
    if not blank:
        claim.publish((acl.key for acl in desired.wanted), shown=bool(bindings and listed.source))
    deletes = settings.acls.deletes and not blank
    changes, held = claim.hold(plan_acls(desired, existing, deletable(owned, settings.acls), deletes))
    present = existing.keys
    plan = make_plan(
        settings.flow,
        changes,
        refused=[*desired.refusals(present), *held],
        errors=[Unobserved(Kind.ACL, reason)] if blank else [],
        existing={Kind.ACL: len(present & set(owned))},
        skipped={f"{reason} ACLs": count for reason, count in _skipped(desired, len(bindings) - len(synced)).items()},
        notes=desired.notes,
    )
    if blank:
        return AclSurvey(plan, present=present)
    return AclSurvey(plan, desired.principals, present, desired.staged, lambda: _alike(desired, present))


def _alike(desired: DesiredAcls, present: Collection[Key]) -> Alike:
    same = {acl.key for acl in desired.wanted}.intersection(present)
    return Alike(dict.fromkeys(same, ""), {key: why for key, why in desired.withheld.items() if key in present})


def _skipped(desired: DesiredAcls, fenced: int) -> Mapping[str, int]:
    return {**desired.skipped, "fence": fenced} if fenced else desired.skipped
