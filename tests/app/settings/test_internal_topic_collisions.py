"""Lockstep's own topics of all flows into one target are known to each of them, however a policy names them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.settings import Settings, load
from sinks.kinds.acls.own_topics import own_topic
from streaming.flow import Flow
from tests.sinks.kinds.acls.acl_builders import acl

POLICY = """
from lockstep.policies import IdentityReplicationPolicy

class Named(IdentityReplicationPolicy):
    def ledger_topic(self, source):
        return f"acme-state-{source}"
"""
BASE = """clusters=a,c,t
a.bootstrap.servers=a:1
c.bootstrap.servers=c:1
t.bootstrap.servers=t:1
a->t.enabled=true
"""
OTHER = "c->t.enabled=true\nc->t.replication.policy.class=acme_named:Named\n"
AT, CT = Flow("a", "t"), Flow("c", "t")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "acme_named.py").write_text(POLICY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_named", raising=False)
    return tmp_path / "mirror.properties"


def loaded(path: Path, text: str, before: Settings | None = None) -> Settings:
    path.write_text(text)
    return load(path, before=before)


def test_ledger_that_another_flows_policy_names_is_known_and_the_other_way_round(path: Path) -> None:
    settings = loaded(path, BASE + OTHER)
    first = next(one for one in settings.flows if one.flow == AT)
    assert own_topic(acl("ALLOW WRITE User:al TOPIC acme-…"), first.internal.on_target) == "acme-state-c"
    own = next(one for one in settings.flows if one.flow == CT)
    assert "lockstep-ledger.a.internal" in own.internal.on_target


def test_flow_that_stays_learns_the_names_of_one_that_is_new(path: Path) -> None:
    before = loaded(path, BASE)
    after = loaded(path, BASE + OTHER, before)
    assert "acme-state-c" in after.flows[0].internal.on_target
    again = loaded(path, BASE + OTHER, after)
    assert [one is other for one, other in zip(again.flows, after.flows, strict=True)] == [True, True]


BOTH_WAYS = """clusters=a,b,c
a.bootstrap.servers=a:1
b.bootstrap.servers=b:1
c.bootstrap.servers=c:1
a->b.enabled=true
c->b.enabled=true
b->c.enabled=true
a->b.offset-syncs.topic.location=target
"""


def test_flow_knows_mm2s_internal_topics_of_every_flow_on_its_target(path: Path) -> None:
    first = loaded(path, BOTH_WAYS).flows[0].internal
    assert first.mm2s_on_target == {
        "heartbeats",
        "a.checkpoints.internal",
        "mm2-offset-syncs.a.internal",
        "c.checkpoints.internal",
        "mm2-offset-syncs.c.internal",
    }


def test_same_cluster_under_another_alias_is_known_by_its_address(path: Path) -> None:
    text = BASE.replace("clusters=a,c,t", "clusters=a,c,t,u") + "u.bootstrap.servers=t:1\nc->u.enabled=true\n"
    first = loaded(path, text).flows[0].internal
    assert {"c.checkpoints.internal", "lockstep-ledger.c.internal"} <= {*first.mm2s_on_target, *first.on_target}
