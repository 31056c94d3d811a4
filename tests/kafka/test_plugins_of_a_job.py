"""A flow of a running job closes its plug-ins with itself; a listener is closed in the thread that calls it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.job.flow_wiring import flow_in_job
from app.settings import load
from sinks.engine.metrics import Metrics

PLUGINS = """
import threading
from lockstep.filters import DefaultTopicFilter
from lockstep.listeners import DefaultGroupListener
from lockstep.policies import DefaultReplicationPolicy

CLOSED = []

class Noted:
    def close(self): CLOSED.append((type(self).__name__, threading.current_thread().name == "listener"))

class Policy(Noted, DefaultReplicationPolicy): ...

class Topics(Noted, DefaultTopicFilter): ...

class Listener(Noted, DefaultGroupListener): ...
"""
LINES = """clusters=a,b
a.bootstrap.servers=localhost:1
b.bootstrap.servers=localhost:2
a->b.enabled=true
replication.policy.class=acme_job_plugins:Policy
topic.filter.class=acme_job_plugins:Topics
group.listener.class=acme_job_plugins:Listener
"""


@pytest.mark.parametrize("replaced", [True, False])
def test_flow_of_a_job_closes_each_plugin_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool) -> None:
    (tmp_path / "acme_job_plugins.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_job_plugins", raising=False)
    path = tmp_path / "mirror.properties"
    path.write_text(LINES)
    settings = load(path)
    flow = flow_in_job(settings, settings.flows[0], Metrics("0"))
    closed: list[tuple[str, bool]] = sys.modules["acme_job_plugins"].CLOSED
    assert closed == []
    flow.close(replaced=replaced)
    settings.close()
    assert sorted(closed) == [("Listener", True), ("Policy", False), ("Topics", False)]
