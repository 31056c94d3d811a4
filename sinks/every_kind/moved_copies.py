"""Refuses changes to copies of drained topics, because their clients may write the copies. Pure.

Drained topics are in the ledger (`sinks.ledger.kept_divergences`) until the flow is unfenced or leads again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.kafka.ports.acl_binding import EVERYONE, AclBinding
from sinks.ledger.kept_divergences import Divergence, takeover_ends
from sinks.model.changes import ALLOW, Change, Kind, Op
from sinks.model.plan import SEE_PLAN, Plan
from streaming.flow import Flow
from streaming.message_words import first_names
from streaming.mm2.records import MAX_INT64, TopicPartition

MOVED = (
    "the flow drained the topic, so its clients may have moved to the target and write the copy. Lockstep changes it "
    "again only after `lockstep unfence` or `lockstep failback --done`"
)
KEPT_DEFAULTS = (
    "{}, so clients may write copies on the target, and the brokers' configs apply to these copies. Lockstep does not "
    "change the configs until {}"
)
KEPT_ACCESS = (
    "{}, so clients may have moved to the target, and the source no longer shows what they need. Lockstep revokes no "
    "access until {}. If you mean to, revoke it on the target by hand"
)
KEPT_NARROWED = "{}, so Lockstep holds back a DENY that may narrow this ALLOW. It creates neither until {}"
OWN_END = "`lockstep unfence`, or until `lockstep failback --done`"
READ = "it has read the ledger of {}: `lockstep status` says what is in the way"
OTHERS_END = "that flow is unfenced, leads again, or is out of the properties file"
BEHIND_TAKEOVER = (
    "the offset lies beyond the end of the copy that Lockstep noted when clients could move to the target. It reads "
    "that end again"
)
GROUPS_OWN = "the flow drained the topic, so the group may have moved to the target and commit its own offset there"
NO_DELETION = frozenset(Op) - {Op.DELETE}


def refuse_moved(plan: Plan, known: Mapping[str, Divergence], *, in_batches: bool = False) -> Plan:
    """Refuse changes to copies whose clients may have moved, also of ACLs that name one. Returns the rest of the plan.

    Once clients may have moved, no principal loses access. An operator may revoke rights on the source although the
    principals use only the target by now, and Lockstep cannot tell.
    Also refuses group offsets beyond the end that the ledger has of such a copy.
    `in_batches`: clients of drained topics move before the others are drained. Their groups commit on the target.
    """
    if not known:
        return plan
    copies, ends = {one.remote for one in known.values()}, takeover_ends(known)
    plan = plan.refusing([one for one in plan.changes if _topic_of(one) in copies], MOVED, remedy=SEE_PLAN)
    plan = _keep_access(plan, f"the flow drained {first_names(sorted(known), 3)}", OWN_END)
    offsets = [one for one in plan.changes if one.kind is Kind.GROUP_OFFSET]
    own = [one for one in offsets if in_batches and one.before is not None and one.key[1] in copies]
    plan = plan.refusing(own, GROUPS_OWN, passing=True)
    behind = [one for one in offsets if one not in own and _lies_behind(one, ends)]
    return plan.refusing(behind, BEHIND_TAKEOVER, passing=True)


def refuse_beside(plan: Plan, drained: Collection[Flow]) -> Plan:
    """Refuse changes that would take access from clients of other flows that drained topics. Returns the rest of the
    plan, with deletions, which the wishes of these flows hold (`sinks.every_kind.wishes`)."""
    return _keep_access(plan, f"{_named(drained)} drained topics", OTHERS_END, NO_DELETION) if drained else plan


def refuse_unknown(plan: Plan, unread: Collection[Flow]) -> Plan:
    """Refuse the same beside flows that may have drained topics, since their ledgers were not read."""
    why, until = f"whether {_named(unread)} drained topics is not known", READ.format(_named(unread))
    return _keep_access(plan, why, until, NO_DELETION) if unread else plan


def _named(flows: Collection[Flow]) -> str:
    return " and ".join(sorted(one.name for one in flows))


def _keep_access(plan: Plan, why: str, until: str, ops: Collection[Op] = frozenset(Op)) -> Plan:
    """Refuse changes that take access away. `why`, `until`: clauses of the reason. `ops`: operations on what principals
    may do that count."""
    access = [one for one in plan.changes if _takes_access(one) and one.op in ops]
    denies = [one for one in access if one.kind is Kind.ACL and one.op is Op.CREATE]
    narrowed = [one for one in plan.changes if any(_narrows(deny, one) for deny in denies)]
    defaults = [one for one in plan.changes if one.kind is Kind.BROKER_CONFIG]
    plan = plan.refusing(access, KEPT_ACCESS.format(why, until), remedy=SEE_PLAN)
    plan = plan.refusing(narrowed, KEPT_NARROWED.format(why, until), remedy=SEE_PLAN)
    return plan.refusing(defaults, KEPT_DEFAULTS.format(why, until), remedy=SEE_PLAN)


def _narrows(deny: Change, change: Change) -> bool:
    """Whether the change creates an ALLOW that this DENY may narrow. Names of resources are not compared."""
    if change.kind is not Kind.ACL or change.op is not Op.CREATE or change.key[-1] != ALLOW:
        return False
    denied, allowed = AclBinding.from_key(deny.key), AclBinding.from_key(change.key)
    who = {denied.principal, allowed.principal}
    return denied.resource_type == allowed.resource_type and (len(who) == 1 or EVERYONE in who)


def _takes_access(change: Change) -> bool:
    """Whether the change takes a permission from a principal on the target."""
    if change.kind is Kind.ACL:
        return (change.op is Op.DELETE) == (change.key[-1] == ALLOW)
    if change.kind is Kind.CLIENT_QUOTA:
        # Without a quota of its own a client falls to a default one.
        return None in (change.before, change.after) or float(str(change.after)) < float(str(change.before))
    return change.kind is Kind.SCRAM_USER and change.op is Op.DELETE


def _lies_behind(change: Change, ends: Mapping[TopicPartition, int]) -> bool:
    _, topic, partition = change.key
    return isinstance(change.after, int) and change.after > ends.get(TopicPartition(topic, int(partition)), MAX_INT64)


def _topic_of(change: Change) -> str | None:
    """Returns the topic of the target that a change concerns. None for changes of other resources, and of groups'
    offsets."""
    if change.kind in (Kind.TOPIC, Kind.TOPIC_CONFIG):
        return change.key[0]
    if change.kind is Kind.ACL and (change.key[0], change.key[2]) == ("TOPIC", "LITERAL"):
        return change.key[1]
    return None
