"""Flows of one file that would write the same: a mistake, or a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.settings.mistaken_files import IDENTITY, QUIET, THREE, TWO, mistakes, warnings


def test_two_flows_that_keep_their_sources_names_on_one_target_are_a_warning(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, QUIET + THREE + IDENTITY)
    assert "a->b and c->b both keep their source's names on b" in found
    apart = "a->b.topics=orders,returns\nc->b.topics=payments\n"
    assert warnings(tmp_path, QUIET + THREE + IDENTITY + apart) == []
    assert warnings(tmp_path, QUIET + THREE) == []


def test_two_flows_that_both_keep_the_brokers_configs_of_one_target_are_a_mistake(tmp_path: Path) -> None:
    key = "lockstep.sync.broker.configs.enabled=true\n"
    (found,) = mistakes(tmp_path, QUIET + THREE + key)
    assert ":12: lockstep.sync.broker.configs.enabled: holds for a->b and c->b" in found
    assert "Let one of them keep it" in found
    assert warnings(tmp_path, QUIET + THREE + f"a->b.{key}") == []
    assert warnings(tmp_path, QUIET + THREE + key + "c->b.lockstep.sync.broker.configs.enabled=false\n") == []


def test_flows_that_lead_round_under_names_that_stay_are_a_warning(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, QUIET + TWO + IDENTITY + "b->a.enabled=true\n")
    assert "a->b, b->a form a cycle" in found
    apart = "a->b.topics=orders\nb->a.topics=payments\n"
    assert warnings(tmp_path, QUIET + TWO + IDENTITY + "b->a.enabled=true\n" + apart) == []
    assert warnings(tmp_path, QUIET + TWO + "b->a.enabled=true\n") == []


SHARING = (
    "from streaming.mm2.replication_policy import DefaultReplicationPolicy\n"
    "class Syncs(DefaultReplicationPolicy):\n"
    "    def offset_syncs_topic(self, alias): return 'mm2-offset-syncs.internal'\n"
    "class Checkpoints(DefaultReplicationPolicy):\n"
    "    def checkpoints_topic(self, alias): return 'all.checkpoints.internal'\n"
    "class Both(Syncs):\n"
    "    def checkpoints_topic(self, alias): return 'mm2-offset-syncs.internal'\n"
)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        (
            THREE + "replication.policy.class=sharing_policy:Checkpoints\n",
            "all.checkpoints.internal on b would hold the checkpoints of a->b and the checkpoints of c->b",
        ),
        (
            THREE + "replication.policy.class=sharing_policy:Syncs\noffset-syncs.topic.location=target\n",
            "mm2-offset-syncs.internal on b would hold the offset-syncs of a->b and the offset-syncs of c->b",
        ),
        (
            TWO + "replication.policy.class=sharing_policy:Both\noffset-syncs.topic.location=target\n",
            "mm2-offset-syncs.internal on b would hold the offset-syncs of a->b and the checkpoints of a->b",
        ),
        (
            THREE.replace("c.bootstrap.servers=h:3", "c.bootstrap.servers=h:1"),
            "mm2-offset-syncs.b.internal on c would hold the offset-syncs of a->b and the offset-syncs of c->b",
        ),
    ],
)
def test_flows_that_share_an_internal_topic_are_refused_with_the_key_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shared: str
) -> None:
    (tmp_path / "sharing_policy.py").write_text(SHARING)
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = mistakes(tmp_path, text)
    assert shared in found
    assert "Choose a replication.policy.class" in found


def test_flows_of_the_default_policy_share_no_internal_topic(tmp_path: Path) -> None:
    both_ways = "b->a.enabled=true\nb->c.enabled=true\na->c.enabled=true\n"
    for location in ("source", "target"):
        assert warnings(tmp_path, QUIET + THREE + both_ways + f"offset-syncs.topic.location={location}\n") == []
