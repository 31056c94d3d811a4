"""ACLs, SCRAM users, client quotas, broker configs: altered on both sides, not shown at all, not permitted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sinks.engine.report import Report
from sinks.kafka.ports.acl_binding import GROUP, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Key, Kind, Op
from sinks.model.principals import PRINCIPALS, PrincipalFilter
from streaming.mm2.replication_filters import DefaultTopicFilter
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import World
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.machine.hazards import Written
from tests.sinks.machine.knowledge import Knowledge
from tests.sinks.machine.origins import LISTS, Cluster
from tests.sinks.machine.stage import SECRET, Stage
from tests.sinks.machine.surroundings import Difference

LINES = (
    "ALLOW READ User:alice TOPIC x",
    "DENY READ User:bob TOPIC y",
    "ALLOW READ User:carol TOPIC z",
    "ALLOW READ User:alice GROUP g",
)
ACLS = st.sampled_from([acl(line) for line in LINES])
COPIES = st.sampled_from([acl(line.replace("TOPIC ", "TOPIC a.")) for line in LINES])
USERS, MECHANISM = st.sampled_from(["alice", "bob", "carol"]), "SCRAM-SHA-256"
EVERYBODY = ("stays", "dora", "alice", "bob", "carol")
ENTITIES = (Entity("alice"), Entity(""), Entity("alice", "app"), Entity(ip="10.0.0.1"))
CONFIGS = {"log.retention.bytes": ["1", "2"], "compression.type": ["gzip", "zstd"], "log.cleaner.threads": ["2", "3"]}
FOREIGN: dict[Kind, Key] = {
    Kind.ACL: acl("ALLOW READ User:dora TOPIC a.x").key,
    Kind.SCRAM_USER: ("dora", MECHANISM),
    Kind.CLIENT_QUOTA: (*Entity("dora"), "producer_byte_rate"),
    Kind.BROKER_CONFIG: ("", "background.threads"),
}
"""What the target has, and no source. The user dora is one of the source, too."""


def quota_of(entity: Entity) -> str:
    return "producer_byte_rate" if entity.ip == Entity().ip else "connection_creation_rate"


class ListsAspect(Stage):
    """`origins`: the clusters that things come from; `theirs`: what others put onto the target; `known`: what flows can
    know of what others took away."""

    def populate(self) -> None:
        super().populate()
        self.origins, self.onto = self.clusters()
        self.theirs: dict[Kind, set[Key]] = {kind: {FOREIGN[kind]} for kind in LISTS}
        self.known, self.narrowed = Knowledge(), False
        self.compared: set[AclBinding] = set()
        if "stays" not in self.source.topics:
            self.source.create_topics({"stays": TopicSpec(1)})
        for origin in self.origins:
            origin.acls.bindings |= {acl("ALLOW READ User:stays TOPIC stays"), acl("ALLOW READ User:dora TOPIC x")}
            origin.acls.bindings |= {acl(line) for line in LINES}
            origin.users.stored |= {(user, MECHANISM): Stored(4096, "unknown") for user in EVERYBODY}
            origin.quotas.quotas = {one: {quota_of(one): 1.0} for one in (Entity("stays"), *ENTITIES)}
        for user in EVERYBODY:
            self.world.provider.known[user] = (f"{SECRET}-0", "0")
        self.onto.acls.bindings.add(acl("ALLOW READ User:dora TOPIC a.x"))
        self.onto.users.stored["dora", MECHANISM] = Stored(8192, "own")
        self.onto.quotas.quotas[Entity("dora")] = {"producer_byte_rate": 7.0}
        # Of two flows into one target, one alone may keep its brokers' configs.
        brokers = self.origins[0].levels
        brokers.set_at[DEFAULT_OF_ALL] = {"log.cleanup.policy": "compact", "compression.type": "gzip"}
        self.onto.levels.set_at[DEFAULT_OF_ALL] = {"background.threads": "11"}
        self.foreign = {kind: self.onto.items(kind)[key] for kind, key in FOREIGN.items()}

    def clusters(self) -> tuple[list[Cluster], Cluster]:
        """The sources, and the target."""
        world, quotas = self.world, self.world.others[PORT]
        source = Cluster("a", world.source_acls, world.source_users, quotas["a"], world.source_levels)
        return [source], Cluster("b", world.target_acls, world.target_users, quotas["b"], world.target_levels)

    def origin(self, which: int) -> Cluster:
        return self.origins[which % len(self.origins)]

    @rule(which=st.integers(0, 1), one=ACLS, there=st.booleans())
    def grant_or_revoke_on_the_source(self, which: int, one: AclBinding, there: bool) -> None:
        bindings = self.origin(which).acls.bindings
        bindings.add(one) if there else bindings.discard(one)

    @rule(which=st.integers(0, 1), user=USERS, there=st.booleans())
    def add_or_remove_a_user(self, which: int, user: str, there: bool) -> None:
        users = self.origin(which).users.stored
        users.update({(user, MECHANISM): Stored(4096, "unknown")}) if there else users.pop((user, MECHANISM), None)

    @rule(user=USERS, version=st.integers(1, 9))
    def change_a_password(self, user: str, version: int) -> None:
        self.world.provider.known[user] = (f"{SECRET}-{version}", str(version))

    @rule(which=st.integers(0, 1), entity=st.sampled_from(ENTITIES), value=st.sampled_from([None, 1.0, 2.0]))
    def set_a_quota(self, which: int, entity: Entity, value: float | None) -> None:
        """Sources that both have it, have it alike: else two flows overwrite each other's."""
        origin = self.origin(which)
        for one in self.origins:
            if value is not None and (one is origin or entity in one.quotas.quotas):
                one.quotas.quotas[entity] = {quota_of(entity): value}
        if value is None:
            origin.quotas.quotas.pop(entity, None)

    @rule(name=st.sampled_from(list(CONFIGS)), value=st.sampled_from([None, 0, 1]))
    def configure_the_brokers(self, name: str, value: int | None) -> None:
        there = self.origins[0].levels.set_at[DEFAULT_OF_ALL]
        there.pop(name, None) if value is None else there.update({name: CONFIGS[name][value]})

    @rule(kinds=st.sets(st.sampled_from(LISTS)))
    def source_shows_nothing(self, kinds: set[Kind]) -> None:
        self.upstream.blank = kinds

    @rule(which=st.integers(0, 1), kind=st.sampled_from(LISTS))
    def broker_falls_behind(self, which: int, kind: Kind) -> None:
        """Its next answer about a kind is what its cluster has now, whatever comes until then."""
        origin = self.origin(which)
        shown: dict[Kind, object] = {
            Kind.ACL: list(origin.acls.bindings),
            Kind.SCRAM_USER: MemoryUsers("", origin.users.stored).describe(),
            Kind.CLIENT_QUOTA: MemoryQuotas("", origin.quotas.quotas).describe(),
            Kind.BROKER_CONFIG: MemoryLevels("", set_at=origin.levels.set_at)
            .describe([DEFAULT_OF_ALL])
            .items[DEFAULT_OF_ALL],
        }
        self.upstream.stale = (origin.alias, kind, shown[kind])

    @rule(
        narrower=st.sampled_from([{"topics.exclude": ".*"}, {"topics": "stays"}, {"topics.exclude": "x"}]),
        principals=st.sampled_from([".*", "stays"]),
        after=st.sampled_from([1.0, 15.0, 61.0]),
    )
    def file_names_less_for_a_while(self, narrower: dict[str, str], principals: str, after: float) -> None:
        """The job has a file that leaves out what it kept; then the operator mends it."""
        kept = [world.settings for world in self.worlds()]
        for world in self.worlds():
            topics, acls = DefaultTopicFilter(), PrincipalFilter({PRINCIPALS: principals})
            topics.configure(narrower)
            rules = replace(world.settings.acls, principals=acls)
            world.settings = replace(world.settings, topic_filter=topics, acls=rules)
        self.begin_anew()
        self.narrowed = True
        try:
            for _ in range(3):
                for world in self.worlds():
                    self.run(world, after, everything=False)
        finally:
            self.narrowed = False
            for world, settings in zip(self.worlds(), kept, strict=True):
                world.settings = settings
            self.begin_anew()

    @rule(
        which=st.sampled_from(["acls", "users", "quotas", "levels"]),
        there=st.booleans(),
        denied=st.sampled_from([[], ["describe"], ["alter"]]),
    )
    def deny_or_permit(self, which: str, there: bool, denied: list[str]) -> None:
        port = getattr(self.onto if there else self.origins[0], which)
        port.denied = set(denied)

    @rule(one=COPIES, there=st.booleans())
    def grant_or_revoke_by_hand(self, one: AclBinding, there: bool) -> None:
        bindings = self.onto.acls.bindings
        before = one in bindings
        bindings.add(one) if there else bindings.discard(one)
        self._taken(Kind.ACL, one.key, before, there)

    @rule(user=USERS, there=st.booleans())
    def add_or_remove_a_user_by_hand(self, user: str, there: bool) -> None:
        key, users = (user, MECHANISM), self.onto.users.stored
        before = key in users
        users.setdefault(key, Stored(8192, "own")) if there else users.pop(key, None)
        self._taken(Kind.SCRAM_USER, key, before, there)

    @rule(entity=st.sampled_from(ENTITIES), value=st.sampled_from([None, 3.0]))
    def set_a_quota_by_hand(self, entity: Entity, value: float | None) -> None:
        quotas, name = self.onto.quotas.quotas, quota_of(entity)
        before = entity in quotas
        quotas.pop(entity, None) if value is None else quotas.update({entity: {name: value}})
        self._taken(Kind.CLIENT_QUOTA, (*entity, name), before, value is not None)

    @rule(name=st.sampled_from(list(CONFIGS)), value=st.sampled_from([None, 0, 1]))
    def configure_the_targets_brokers_by_hand(self, name: str, value: int | None) -> None:
        there = self.onto.levels.set_at[DEFAULT_OF_ALL]
        before = name in there
        there.pop(name, None) if value is None else there.update({name: CONFIGS[name][value]})
        self._taken(Kind.BROKER_CONFIG, ("", name), before, value is not None)

    def _taken(self, kind: Kind, key: Key, before: bool, after: bool) -> None:
        """Another client put this there, or took it away."""
        if not after:
            self.mine[kind].pop(key, None)
            self.theirs[kind].discard(key)
            self.either.discard((kind, key))
            self.known.taken_away(kind, key, self.remembering(kind, key))
        elif not before and self._may_be_ours(kind, key):
            self.either.add((kind, key))
        elif not before:
            self.theirs[kind].add(key)

    def _may_be_ours(self, kind: Kind, key: Key) -> bool:
        """Whether a flow cannot know that this is not what it made, or was about to make."""
        if self.remembering(kind, key, Entry.INTENT):
            return True
        return (kind, key) not in self.known.missed and self.remembered(kind, key)

    def forget(self) -> None:
        for kind in LISTS:
            self.theirs[kind] |= self.mine[kind].keys() | {key for one, key in self.either if one is kind}
        super().forget()

    def check_foreign(self) -> None:
        super().check_foreign()
        for origin, kind in product(self.origins, LISTS):
            self.known.still_wanted(origin.alias, kind, origin.wanted(kind, self.world.provider))
        for kind in LISTS:
            there = self.onto.items(kind)
            assert self.theirs[kind] <= there.keys(), f"another client's is gone: {self.theirs[kind] - there.keys()}"
            assert there[FOREIGN[kind]] == self.foreign[kind]
        own = {self.onto.users.stored[key].password for key in self.theirs[Kind.SCRAM_USER]}
        assert own == {"own"}, "a user of another client has another password"

    def _never_claimed(self, kind: Kind, alias: str) -> bool:
        """Whether the flow of this source has the kind paused, and its ledger knows of nothing that it wanted."""
        for world in self.worlds():
            ledger = world.ledger()
            if world.settings.flow.source == alias and kind in ledger.paused():
                return ledger.get(Entry.CLAIMED, kind.value) is None and not ledger.owned(kind)
        return False

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        """Nothing goes that a source has, whatever it shows; that of another flow's source counts once it was seen, and
        while that flow's file names it."""
        super().check_pass(world, written, report)
        flow = world.settings.flow
        for kind in LISTS:
            gone = {one.key for one in written if one.kind is kind and one.op is Op.DELETE}
            if not gone:
                continue
            wanted = set[Key]()
            for one in self.origins:
                there = one.wanted(kind, self.world.provider)
                if one.alias == flow.source:
                    wanted |= there.keys()
                elif not (
                    self.narrowed or self.known.is_misled(kind, one.alias) or self._never_claimed(kind, one.alias)
                ):
                    wanted |= self.known.still_wanted(one.alias, kind, there)
            gone = {key for key in gone & wanted if not (kind is Kind.ACL and self._reads_nothing(key))}
            assert not gone, f"deleted, and still on a source: {gone}"
        sees_acls = self._sees_acls and not self.narrowed
        unseen = set(LISTS) if self.narrowed else self.upstream.blank | self.upstream.misread
        self.known.created({(one.kind, one.key) for one in written if one.op is Op.CREATE}, self.onto.items)
        (source,) = (one for one in self.origins if one.alias == flow.source)
        wanted = partial(source.wanted, passwords=self.world.provider)
        self.known.passed(flow, report, unseen, self.onto.items, wanted)
        self.upstream.misread.clear()
        saw = report is not None and report.everything and Kind.ACL not in report.paused and sees_acls
        self.compared = set(self.origins[0].acls.bindings) if saw else set()

    def _reads_nothing(self, key: Key) -> bool:
        """Whether this is a group's right of who may read no topic on the target, and has none to read there."""
        right = AclBinding.from_key(key)
        if right.resource_type != GROUP:
            return False
        readable = {
            f"{origin.alias}.{one.resource_name}"
            for origin in self.origins
            for one in origin.acls.bindings
            if (one.resource_type, one.principal) == (TOPIC, right.principal)
        }
        may_read = {(one.resource_type, one.principal) for one in self.onto.acls.bindings}
        return (TOPIC, right.principal) not in may_read and not readable & self.target.topics.keys()

    def differences(self, world: World) -> Iterator[Difference]:
        yield from super().differences(world)
        (origin,) = (one for one in self.origins if one.alias == world.settings.flow.source)
        for kind in (kind for kind in LISTS if world.settings.enabled[kind]):
            there, wanted = self.onto.items(kind), origin.wanted(kind, self.world.provider)
            left = {key for key, value in wanted.items() if there.get(key) != value}
            if kind is Kind.SCRAM_USER:
                left -= self.theirs[kind] | {key for one, key in self.either if one is kind}
            elsewhere = {key for one in self.origins for key in one.wanted(kind, self.world.provider)}
            mine = {key for key, flow in self.mine[kind].items() if flow == world.settings.flow}
            left |= {key for key in mine & there.keys() - elsewhere if (kind, key) not in self.unowned}
            yield from ((kind, key) for key in left)

    def left(self) -> set[Difference]:
        """A foreign user keeps its password, and each pass refuses to change it."""
        kept = {one for one in self.unowned if one[0] is Kind.SCRAM_USER and not self.remembering(*one, Entry.OWNED)}
        return super().left() - kept

    def begin_anew(self) -> None:
        super().begin_anew()
        self.compared = set()
        self.known.begin_anew()

    def told_later(self) -> set[Kind]:
        """Users follow the ACLs that the pass before this one compared, if it saw them."""
        if self.narrowed:
            return set(Kind)
        known = self._sees_acls and self.origins[0].acls.bindings == self.compared
        return super().told_later() | self.upstream.misread | (set() if known else {Kind.SCRAM_USER})

    @property
    def _sees_acls(self) -> bool:
        denied = self.origins[0].acls.denied | self.onto.acls.denied
        return not denied and Kind.ACL not in self.upstream.blank | self.upstream.misread

    def clear(self) -> None:
        super().clear()
        self.upstream.stale = None
        for port in (
            port for one in (*self.origins, self.onto) for port in (one.acls, one.users, one.quotas, one.levels)
        ):
            port.denied = set()
