"""What brokers lack is said by name before anything is written, and only of what the flow would use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.cli.validate_command import missing_features
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings, Incremental
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_records import MemoryRecords
from tests.memory.memory_transactions import MemoryTransactions
from tests.memory.memory_users import MemoryUsers
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.memory_flow import memory_ports


@dataclass
class Side:
    alias: str
    users: MemoryUsers = field(init=False)
    acls: MemoryAcls = field(init=False)
    levels: MemoryLevels = field(init=False)
    cluster: MemoryCluster = field(init=False)
    transactions: MemoryTransactions = field(init=False)

    def __post_init__(self) -> None:
        self.users, self.acls, self.levels = MemoryUsers(self.alias), MemoryAcls(self.alias), MemoryLevels(self.alias)
        self.cluster = MemoryCluster(self.alias, f"id-of-{self.alias}")
        self.transactions = MemoryTransactions(MemoryRecords(self.alias))
        put_topic(self.cluster, "orders")

    def ports(self) -> Any:
        others: Mapping[str, Any] = {"client-quotas": {self.alias: MemoryQuotas(self.alias)}}
        made = memory_ports(
            self.cluster, self.acls, self.users, MemoryGroups(self.alias), others=others, levels=self.levels
        )
        return replace(made, transactions=self.transactions)


def said(a: Side, b: Side, flow: FlowSettings | None = None, signals: bool = True) -> str:
    return "\n".join(
        missing_features(flow or flow_settings(enabled=tuple(Kind)), a.ports(), b.ports(), lambda: signals)
    )


def test_nothing_is_said_of_clusters_that_lack_nothing() -> None:
    assert said(Side("a"), Side("b")) == ""


def test_scram_users_that_one_cluster_does_not_keep_are_named_where_they_are_enabled() -> None:
    a, b = Side("a"), Side("b")
    a.users.supported = False
    assert "scram-user is not kept in step: a" in said(a, b)
    assert said(a, b, flow_settings(enabled=[Kind.TOPIC])) == ""


def test_an_authorizer_that_is_not_there_is_named() -> None:
    a, b = Side("a"), Side("b")
    b.acls.authorizer = False
    assert "acl is not kept in step: b" in said(a, b)


def test_brokers_without_incremental_alter_configs_are_named_with_what_is_done_instead() -> None:
    a, b = Side("a"), Side("b")
    b.levels.incremental = False
    text = said(a, b)
    assert "b has no IncrementalAlterConfigs" in text
    assert "deprecated AlterConfigs" in text
    assert "broker-config is not written there" in text
    required = flow_settings(enabled=[Kind.TOPIC_CONFIG], incremental=Incremental.REQUIRED)
    assert "topic-config is not written there" in said(a, b, required)
    assert b.levels.writes == 0


def test_topics_without_ids_transactions_without_names_and_a_log_without_a_signal_are_named() -> None:
    a, b = Side("a"), Side("b")
    a.cluster.topics["orders"].id = ""
    a.transactions.supported = False
    text = said(a, b, signals=False)
    assert "a tells no topic ids" in text
    assert "a cannot name open transactions" in text
    assert "a tells no metadata-change signal" in text


def test_a_cluster_that_does_not_answer_now_lacks_nothing() -> None:
    def silent() -> bool:
        raise ClusterUnreachable("cluster a: no answer")

    a, b = Side("a"), Side("b")
    a.users.reachable = b.levels.reachable = False
    assert missing_features(flow_settings(enabled=tuple(Kind)), a.ports(), b.ports(), silent) == []
