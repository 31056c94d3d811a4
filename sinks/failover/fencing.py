"""Sets and lifts a fence on the source: a DENY WRITE for each topic. The ledger notes each ACL before its creation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from sinks.failover.fence_notes import (
    ANOTHERS,
    INTENT,
    NO_OTHERS,
    OWNED,
    UNCLEAR,
    OtherLedgers,
    claims,
    claims_surely,
    is_intent,
    is_unclear,
    note_of,
    own_fences,
    relies_on,
    unclear_fences,
)
from sinks.failover.scene import Scene
from sinks.faults import NotSupported, RightsMissing
from sinks.flow_settings import Copier
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Key
from sinks.model.times import utc_text
from streaming.errors import LockstepError
from streaming.message_words import first_names, number_of

COPIED_FENCE: Mapping[Copier, tuple[str, str]] = {
    Copier.MM2: (
        "MM2 syncs ACLs of {flow} as well (sync.topic.acls.enabled). It would copy the fence to {target}, and never "
        "delete it (MirrorSourceConnector skips ALLOW WRITE only). It would stop every writer there, maybe itself",
        "write sync.topic.acls.enabled=false, and lockstep.sync.topic.acls.enabled=true to leave it to Lockstep, and "
        "restart MM2",
    ),
    Copier.OFFSET_PRESERVING: (
        "the copier of {flow} keeps ACLs in step (lockstep.copier.keeps): it would copy the fence to {target}, and "
        "keep producers out there after the failover",
        "switch its ACL sync off, and take acl out of lockstep.copier.keeps to leave ACLs to Lockstep",
    ),
}
"""Why a fence cannot be set while the copier copies ACLs, and what to do."""

NO_AUTHORIZER = (
    "{source} has no authorizer, so no ACL can stop producers. Client quotas cannot either: Kafka refuses one of 0. "
    "Stop the producers, or close the listener or the network to them. Then run `lockstep cutover --without-fence`, "
    "which proves by the topics' ends alone that no client writes"
)

CLOSED_BY_WHOM = (
    "{topics} on {source} have a DENY WRITE already. It may be the fence of {flows}, whose ledger cannot be read "
    "({why}). Then `unfence` of {flows} would lift it while {flow} relies on it. Run the command again once that "
    "ledger can be read. If {flows} is certainly not fenced, use a copy of the file that does not enable {flows}"
)

STAYS_CLOSED = (
    "the fence on {source} stays, because {flows} may rely on it, too: its ledger cannot be read ({why}). Run the "
    "command again once that ledger can be read. If {flows} is certainly not fenced, use a copy of the file that does "
    "not enable {flows}"
)


class NoAuthorizer(LockstepError):
    """The source has no authorizer, so Lockstep cannot fence it."""

    code = "NO_AUTHORIZER"
    remedy = "stop the producers, or close the network to them; then type `lockstep cutover --without-fence`"


class FenceCopied(LockstepError):
    """The copier syncs ACLs, so it would copy the fence to the target."""

    code = "FENCE_COPIED"
    remedy = (
        "switch the ACL sync of the copier off, beside MM2 with `sync.topic.acls.enabled=false`, restart it, and "
        "type `lockstep cutover` or `lockstep fence` again"
    )


class FenceUnclear(LockstepError):
    """It is unknown whether another flow created the fence or relies on it. The fence stays."""

    code = "FENCE_UNCLEAR"
    remedy = (
        "make the target of the flow that the message names answer, and type the same command again. If that flow is "
        "certainly not fenced, use `--config` with a copy of the file that does not enable it"
    )


class FenceChange(NamedTuple):
    """The outcome of setting or lifting a fence."""

    acls: int
    """How many ACLs were created or deleted."""
    left: Collection[AclBinding] = ()
    """ACLs that no `unfence` deletes, because their creator is unknown."""
    shared: Collection[AclBinding] = ()
    """ACLs that stay because another flow uses them as its fence."""


class Fence:
    """The fence of one flow on its source. `others`: ledgers of the other flows from there, which note its ACLs."""

    def __init__(self, scene: Scene, others: OtherLedgers = NO_OTHERS) -> None:
        self._settings, self._source, self._flow = scene.settings, scene.settings.flow.source, scene.settings.flow.name
        self._acls, self._ledger, self._now = scene.source.acls, scene.journal.ledger, scene.journal.now
        self._others = others

    def check(self) -> set[AclBinding]:
        """Checks that a fence can be set, and returns the source's ACLs. Raises NoAuthorizer, FenceCopied."""
        existing = self._existing()
        if self._settings.failover.copier_copies_acls:
            flow = self._settings.flow
            copied, off = COPIED_FENCE[self._settings.copier]
            raise FenceCopied(f"{copied.format(flow=flow.name, target=flow.target)}: {off}")
        return existing

    def not_certain(self, topics: Collection[str]) -> list[AclBinding]:
        """Returns the DENY ACLs of these topics that exist already and that this flow may not own. Raises
        NoAuthorizer."""
        existing, now = self._existing(), self._now()
        wanted = [acl for acl in fence_acls(topics) if acl in existing]
        return [acl for acl in wanted if not claims_surely(self._ledger, acl.key, now)]

    def check_known(self, topics: Collection[str]) -> None:
        """Checks that `deny` can tell which flows share the DENY ACLs that exist already. Writes nothing.

        Raises FenceUnclear, NoAuthorizer.
        """
        if self._others.unread and (found := self.not_certain(topics)):
            closed = first_names(sorted(acl.resource_name for acl in found))
            raise FenceUnclear(CLOSED_BY_WHOM.format(topics=closed, flow=self._flow, **self._unread()))

    def deny(self, topics: Collection[str]) -> FenceChange:
        """Denies all writes to these topics. Raises NoAuthorizer, FenceCopied, FenceUnclear, LockstepError.

        If another flow created the DENY, both flows share it. If another client did, `lift` does not delete it.
        """
        existing = self.check()
        self.check_known(topics)
        wanted = fence_acls(topics)
        missing = [acl for acl in wanted if acl not in existing]
        left = self._settle([acl for acl in wanted if acl in existing])
        self._note(missing, f"{INTENT} {utc_text(self._now())}")
        try:
            faults = self._acls.create(missing)
        except RightsMissing:
            # Some may exist all the same: a refused login can end a request that was already sent.
            self._note(set(missing) - self._existing(), None)
            raise
        self._note([acl for acl, fault in faults.items() if fault is not None and not fault.unknown], None)
        self._note([acl for acl, fault in faults.items() if fault is None], OWNED)
        refused = {acl: fault for acl, fault in faults.items() if fault is not None}
        if refused:
            acl, fault = next(iter(refused.items()))
            raise LockstepError(
                f"the fence of {acl.resource_name} and {len(refused) - 1} more topics on {self._source} was refused: "
                f"{fault}. Grant ALTER on the CLUSTER and run it again, or lift the others with `lockstep unfence`"
            )
        return FenceChange(len(missing), left)

    def _settle(self, existing: Collection[AclBinding]) -> Collection[AclBinding]:
        """Notes in the ledger who owns these ACLs: this flow, this and another flow, or an unknown client.

        Returns the ACLs whose creator is unknown. No flow copies them while this flow is fenced with them."""
        shared, now = [acl for acl in existing if self._is_claimed(acl.key)], self._now()
        certain = {acl for acl in existing if claims_surely(self._ledger, acl.key, now)}
        ledgers = (self._ledger, *self._others.ledgers)
        doubtful = {*existing}.difference(shared, certain)
        unclear = [acl for acl in doubtful if any(is_unclear(ledger, acl.key, now) for ledger in ledgers)]
        self._ledger.put({(Entry.FENCE, acl.key): UNCLEAR for acl in unclear})
        self._note([*(acl for acl in certain if is_intent(note_of(self._ledger, acl.key))), *shared], OWNED)
        return unclear

    def _existing(self) -> set[AclBinding]:
        try:
            return set(self._acls.describe())
        except NotSupported as error:
            raise NoAuthorizer(NO_AUTHORIZER.format(source=self._source)) from error

    def _note(self, acls: Collection[AclBinding], value: str | None) -> None:
        """Writes `value` to this flow's ledger entries for these ACLs. The other flows' ledgers get this flow's name,
        unless they claim the ACL themselves. None deletes the entries."""
        elsewhere = None if value is None else self._flow
        for other in self._others.ledgers:
            other.put({(Entry.FENCE, acl.key): elsewhere for acl in acls if not claims(other, acl.key)})
        self._ledger.put({(Entry.FENCE, acl.key): value for acl in acls})

    def _is_claimed(self, key: Key) -> bool:
        """Whether another flow uses this ACL as its fence."""
        return any(claims_surely(ledger, key, self._now()) for ledger in self._others.ledgers)

    def liftable(self, only: Collection[Key] | None = None) -> list[AclBinding]:
        """Returns the ACLs that `lift` would delete or release. Writes nothing. Raises FenceUnclear."""
        found = own_fences(self._ledger) | unclear_fences(self._ledger)
        keys = [key for key in found if only is None or key in only]
        if keys and self._others.unread:
            raise FenceUnclear(STAYS_CLOSED.format(**self._unread()))
        return [AclBinding.from_key(key) for key in keys]

    def _unread(self) -> dict[str, str]:
        unread = self._others.unread
        why = "; ".join(f"{flow}: {reason}" for flow, reason in unread.items())
        return {"source": self._source, "flows": ", ".join(unread), "why": why}

    def lift(self, only: Collection[Key] | None = None) -> FenceChange:
        """Deletes the ACLs that `deny` created in any run, or with `only` some of them, by key.

        If another flow uses an ACL as its fence, it stays until that flow is unfenced. Raises FenceUnclear,
        LockstepError.
        """
        bindings = self.liftable(only)
        shared = [acl for acl in bindings if self._is_claimed(acl.key)]
        self._ledger.put({(Entry.FENCE, acl.key): ANOTHERS for acl in shared})
        unclear = {acl for acl in bindings if is_unclear(self._ledger, acl.key, self._now())}
        there = unclear & self._existing() if unclear else set()
        relied = self._hand_on(there)
        ours = {*bindings}.difference(shared, unclear)
        faults = self._acls.delete(ours) if ours else {}
        self._note([*(unclear - relied), *(acl for acl in ours if faults[acl] is None)], None)
        for acl, fault in faults.items():
            if fault is not None:
                raise LockstepError(f"the fence of {acl.resource_name} on {self._source} could not be lifted: {fault}")
        return FenceChange(len(ours), there - relied, {*shared, *relied})

    def _hand_on(self, unclear: Collection[AclBinding]) -> set[AclBinding]:
        """Releases `unclear` ACLs that other flows still use as their fence, and returns these.

        No flow copies them. When the last such flow is unfenced, its command names them."""
        relied = set[AclBinding]()
        for other in self._others.ledgers:
            found = [acl for acl in unclear if relies_on(other, acl.key)]
            other.put({(Entry.FENCE, acl.key): UNCLEAR for acl in found if not claims(other, acl.key)})
            relied.update(found)
        self._ledger.put({(Entry.FENCE, acl.key): ANOTHERS for acl in relied})
        return relied


# Lifts the fence of a flow while other flows of the same source may use it, and says which ACLs stay.
#
# Both directions are checked before a command begins: a half-done fence would block the next command.


@contextmanager
def open_fence(scene: Scene) -> Iterator[Fence]:
    """Yields the flow's fence, with the ledgers of the other flows from its source open."""
    with scene.other_ledgers() as others:
        yield Fence(scene, others)


def check_deniable(scene: Scene, topics: Collection[str]) -> None:
    """Checks that these topics can be fenced; writes nothing. Raises FenceUnclear, NoAuthorizer."""
    if Fence(scene).not_certain(topics):
        with open_fence(scene) as fence:
            fence.check_known(topics)


def check_liftable(scene: Scene) -> None:
    """Checks that the fence can be lifted; writes nothing. Raises FenceUnclear."""
    if own_fences(scene.journal.ledger) | unclear_fences(scene.journal.ledger):
        with open_fence(scene) as fence:
            fence.liftable()


def lift_fence(scene: Scene, only: Collection[Key] | None = None) -> None:
    """Deletes the fence's DENY ACLs, or with `only` some of them, and tells the operator which stay.

    Raises FenceUnclear, LockstepError.
    """
    with open_fence(scene) as fence:
        lifted = fence.lift(only)
    source = scene.settings.flow.source
    scene.say(f"{number_of(lifted.acls, 'DENY ACL was', 'DENY ACLs were')} deleted on {source}")
    if lifted.shared:
        topics = first_names(sorted(acl.resource_name for acl in lifted.shared))
        scene.say(
            f"{topics} on {source} stay closed: another flow from there is fenced, too, or its `fence` is half done"
        )
    name_left(scene, {acl.resource_name for acl in lifted.left})


def name_left(scene: Scene, topics: Collection[str]) -> None:
    """Warns the operator of topics whose DENY stays because its creator is unknown."""
    if topics:
        scene.say(
            f"CAREFUL: the DENY WRITE for User:* on {first_names(sorted(topics))} stays on "
            f"{scene.settings.flow.source}, even after `unfence`: a command died before it learned which client "
            "created it. If no client needs it, remove it with kafka-acls.sh --remove --deny-principal 'User:*' once "
            "no flow from there is fenced and producers may write there again"
        )
