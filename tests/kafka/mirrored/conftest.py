"""A real MM2 between the shared clusters, which ends with the tests that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.local.local_mirror import LocalMirror
from tests.conftest import Clusters
from tests.kafka import mm2_records
from tests.quick_java import QUICK_KAFKA


@pytest.fixture(scope="package")
def mirror(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMirror]:
    """MM2 from a to b for topics and groups `mirrored-…`, every second, under the aliases of `mm2_records`.

    When a test gets it, it has replicated a topic and written records of every kind.
    """
    properties = mm2_records.properties(clusters.a, clusters.b)
    folder = tmp_path_factory.mktemp("mirror")
    mm2_records.make_topic(clusters.a)
    with LocalMirror(properties, folder, java_options=QUICK_KAFKA) as mirror:
        mm2_records.bring_about(clusters.a, clusters.b)
        yield mirror
