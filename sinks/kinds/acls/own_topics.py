"""Finds ACLs that Lockstep must not copy from the source, above all for Kafka's, MM2's and Lockstep's own topics. Pure.

A client that may write the ledger can turn it against the job. A client that may write `__consumer_offsets` or MM2's
checkpoints can turn them against every group. DESCRIBE of these topics does no harm. A DENY only takes rights from its
own principal.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import (
    EVERYONE,
    GROUP,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    WILDCARD,
    AclBinding,
)
from sinks.kinds.acls.patterns import covers_any, is_wildcard, prefix_of
from sinks.kinds.desired_topics import OWN
from sinks.model.changes import DENY
from sinks.model.principals import NamedPrincipals

KAFKAS_TOPICS = (
    "__cluster_metadata",
    "__consumer_offsets",
    "__remote_log_metadata",
    "__share_group_state",
    "__transaction_state",
)
"""Kafka's own topics (`Topic`, `TopicBasedRemoteLogMetadataManagerConfig`), whether or not the target has them yet."""

MM2_PREFIX = "mm2-"
"""Prefix of a dedicated MM2's own topics. One of them holds its connectors' configs with their passwords."""

BEGINNINGS = (*OWN, MM2_PREFIX)

READING_OPERATIONS = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})
"""Operations that an ACL may allow on these topics."""

READING_MM2S = READING_OPERATIONS | {"READ"}
"""Operations that an ACL may allow on MM2's heartbeats, checkpoints and offset-syncs: MM2's client for applications
reads them (KIP-382)."""

COVERS = (
    "on the target, {} {} covers {}, which is Kafka's, MM2's or Lockstep's own. Use ACLs on the source that leave it "
    "out. Or grant this on the target by hand, or leave the principal out (lockstep.acl.principals.exclude)"
)
WORKERS = re.compile(r".*-mm2(-Mirror.*)?")
"""Matches groups and transactional ids of a dedicated MM2's workers (`MirrorMaker`, `Worker.taskTransactionalId`). A
member of such a group can stop the replication."""

OF_WORKERS = (
    "on the target, {} {} belongs to MM2's workers. Grant this on the target by hand, or leave the principal out "
    "(lockstep.acl.principals.exclude)"
)
EVERYBODY = "denies every principal, also the protected ones ({}); if that is meant, deny it on the target by hand"


def own_topic(there: AclBinding, ours: Collection[str]) -> str | None:
    """Returns the first topic of Kafka or Lockstep that a pattern covers, or the prefix of such topics; None if it
    covers none.

    `ours`: Lockstep's topics of all flows of the file into this target. Topics of other flows are known by their
    prefix.
    """
    name, prefix, known = there.resource_name, prefix_of(there), (*KAFKAS_TOPICS, *sorted(ours))
    if prefix is None:
        return name if name in known or name.startswith(BEGINNINGS) else None
    found = next((topic for topic in known if topic.startswith(prefix)), None)
    return found or next((begin for begin in BEGINNINGS if begin.startswith(prefix) or prefix.startswith(begin)), None)


def mm2s_topics(settings: FlowSettings) -> frozenset[str]:
    """Returns MM2's topics on the target whose records Lockstep believes: the internal ones of all flows of the file,
    and the flow's copied heartbeats, which tell whether MM2 copies."""
    internal = settings.internal
    copied = settings.policy.format_remote_topic(settings.flow.source, internal.heartbeats)
    return internal.mm2s_on_target | {copied}


def danger(there: AclBinding, protected: NamedPrincipals, ours: Collection[str], mm2s: Collection[str]) -> str | None:
    """Returns why Lockstep must not copy this ACL to the target; None if it may.

    `protected`: principals that Lockstep never locks out. `ours`: as for `own_topic`. `mm2s`: as from `mm2s_topics`.
    """
    if there.permission == DENY:
        return EVERYBODY.format(protected) if there.principal == EVERYONE and protected else None
    if there.operation in READING_OPERATIONS:
        return None
    if there.resource_type != TOPIC:
        found = there.resource_type in (GROUP, TRANSACTIONAL_ID) and WORKERS.fullmatch(there.resource_name)
        return OF_WORKERS.format(there.resource_type, there.resource_name) if found else None
    own = own_topic(there, ours)
    if own is None and there.operation not in READING_MM2S:
        own = next((topic for topic in sorted(mm2s) if covers_any(there, [topic])), None)
    return COVERS.format(there.pattern_type, there.resource_name, own) if own else None


def wide_deny(binding: AclBinding) -> str | None:
    """Returns why a DENY of groups or transactional ids needs an entry in the file; None if it needs none.

    Groups have the same names on both sides. So a DENY of `*` also denies applications of the target that the source
    does not know.
    """
    if binding.permission != DENY or not is_wildcard(binding):
        return None
    return (
        f"denies {binding.principal} every {binding.resource_type} of the target, also what its own applications use: "
        "to copy it, set lockstep.acl.wildcard.denies.enabled=true; or deny prefixes or names on the source"
    )


def wide_notes(binding: AclBinding, source: str) -> list[str]:
    """Returns notes about an ACL of groups or transactional ids, whose names are the same on the target. `source`: the
    alias in the names of a dedicated MM2's workers."""
    workers = f"{source}-mm2"
    of_workers = f"MM2's workers ({workers})" if binding.operation not in READING_OPERATIONS else ""
    copied = (
        f"{binding.permission} {binding.operation} on {binding.resource_type} {{}} for {binding.principal} is copied"
    )
    if is_wildcard(binding):
        also = (
            f"other sources', the target's own and {of_workers}"
            if of_workers
            else "other sources' and the target's own"
        )
        return [f"{copied.format(WILDCARD)} as it is: on the target it holds for all that is there, {also} included"]
    if binding.pattern_type == PREFIXED and of_workers and workers.startswith(binding.resource_name):
        return [f"{copied.format(binding.resource_name + '…')} as it is: on the target it also covers {of_workers}"]
    return []
