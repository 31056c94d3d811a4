"""One MM2 and one process for commands, for all tests of failovers between real clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.local.local_mirror import LocalMirror
from app.wiring import open_cluster
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from tests.conftest import Clusters
from tests.kafka.failover.failover_processes import Commands, command_server
from tests.kafka.failover.failovers import SOURCE, TARGET, Flow, properties, write_file
from tests.quick_java import QUICK_KAFKA


@pytest.fixture(scope="package")
def leaving(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMirror]:
    """MM2, which copies `leaving-…`."""
    with LocalMirror(properties(clusters), tmp_path_factory.mktemp("leaving"), java_options=QUICK_KAFKA) as mirror:
        yield mirror


@pytest.fixture
def flow(clusters: Clusters, leaving: LocalMirror, tmp_path: Path) -> Iterator[Flow]:
    """The flow, mirroring; afterwards it does again, with no topic left."""
    config = write_file(tmp_path, properties(clusters, **{"lockstep.checkpoint.dir": str(tmp_path)}))
    with (
        closing(open_cluster(SOURCE, {"bootstrap.servers": clusters.a.bootstrap})) as a,
        closing(open_cluster(TARGET, {"bootstrap.servers": clusters.b.bootstrap})) as b,
    ):
        made = Flow(a, b, config, clusters)
        yield made
        a.acls.delete([acl for acl in a.acls.describe() if acl.resource_name.startswith("leaving-")])
        a.delete_topics([topic for topic in a.list_topics() if topic.startswith("leaving-")])
        name = f"lockstep-ledger.{SOURCE}.internal"
        ledger = Ledger(name, b, b, 1)
        if ledger.exists:
            entries = (Entry.FAILOVER, Entry.FENCE, Entry.STAGED, Entry.DIVERGENCE, Entry.SOURCE_ENDS, Entry.LOST)
            ledger.put({(entry, key): None for entry in entries for key in ledger.values(entry)})


@pytest.fixture(scope="package")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Runs commands that may die at any step."""
    with command_server(tmp_path_factory.mktemp("commands")) as server:
        yield server
