"""How several pytest processes share the tests: a file each time, and folders whose brokers are dear as a whole.

Every process starts the brokers and the SparkSession that its tests ask for, so a shared fixture is shared within one.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

TOGETHER = {
    "tests/kafka/configs_tool": "three brokers",
    "tests/kafka/running_job": "the running job",
    "tests/kafka/failover": "MM2 of the failover",
    "tests/kafka/three_brokers": "three brokers a cluster",
    "tests/kafka/secured_clusters": "secured clusters",
    "tests/kafka/mirrored": "MM2",
}
"""Files, and folders, whose tests share what takes long to start."""

LONGEST_FIRST = (
    "tests/kafka/running_job/",
    # Before a real MM2 makes its topics there.
    "tests/kafka/secured_clusters/test_secured.py",
    "tests/kafka/secured_clusters/",
    "tests/kafka/configs_tool/",
    "tests/kafka/failover/",
    "tests/kafka/test_demo.py",
    "tests/kafka/",
    "tests/contract/",
    "tests/spark/",
    "tests/parity/",
)
"""What a process that has nothing left to do takes next; all other tests are short, and fill the end."""


def unit_of(test: str) -> str:
    """The unit of a test, by its id: all tests of a unit run in one process, in their order."""
    file = PurePosixPath(test.partition("::")[0])
    return TOGETHER.get(str(file)) or TOGETHER.get(str(file.parent)) or str(file)


def rank(test: str) -> int:
    """The place of a test's unit in `LONGEST_FIRST`."""
    return next((place for place, begin in enumerate(LONGEST_FIRST) if test.startswith(begin)), len(LONGEST_FIRST))


class UnitScheduling(LoadScopeScheduling):
    """pytest-xdist's scheduler with units of our own."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def sort_longest_first(items: list[pytest.Item]) -> None:
    """In place; tests of one rank keep their order."""
    items.sort(key=lambda item: rank(item.nodeid))
