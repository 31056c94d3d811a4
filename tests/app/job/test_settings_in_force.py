"""A running job keeps its flows and clusters, whatever its file says by now: others come with a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.job.running_job import in_force
from app.settings import Settings, load
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = """clusters=a,b
a.bootstrap.servers=a:1
b.bootstrap.servers=b:1
a->b.enabled=true
b->a.enabled=true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mirror.properties"


def read_again(file: Path, before: str, after: str) -> tuple[Settings, Settings]:
    """The job's settings, and those that hold after the file was read again."""
    file.write_text(before)
    running = load(file)
    file.write_text(after)
    return running, in_force(running, load(file, before=running))


def test_flow_from_a_new_cluster_waits_for_a_restart(file: Path) -> None:
    more = (
        BASE.replace("clusters=a,b", "clusters=a,b,c") + "c.bootstrap.servers=c:1\nc->b.enabled=true\ntopics=orders\n"
    )
    _, now = read_again(file, BASE, more)
    assert [flow.flow for flow in now.flows] == [AB, BA]
    assert now.clusters.keys() == {"a", "b"}
    assert all(flow.topic_filter.should_replicate_topic("orders") for flow in now.flows)
    # What runs for each flow finds its clusters.
    assert all(now.cluster(alias, one.flow) for one in now.flows for alias in (one.flow.source, one.flow.target))


def test_flow_that_the_file_has_no_more_goes_on_until_a_restart(file: Path) -> None:
    running, now = read_again(file, BASE, BASE.replace("b->a.enabled=true", "b->a.enabled=false"))
    assert [id(flow) for flow in now.flows] == [id(flow) for flow in running.flows]
    assert now.plugin_properties.keys() == {AB, BA}
