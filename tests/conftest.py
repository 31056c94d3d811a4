"""What the tests of a process share: two clusters, a SparkSession, each started at the first test that needs it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import hypothesis
import pytest
from pyspark.sql import SparkSession
from xdist.remote import Producer

from app.local import ports
from app.local.jars import connector_jars, fetched
from app.local.local_cluster import LocalCluster, started
from app.spark.submit_options import with_lockstep
from tests.examples import try_as_the_profile_says
from tests.fetched_jars import MIRROR_CLIENT
from tests.kafka.containers import broker_in_container, docker_answers
from tests.quick_java import QUICK_KAFKA, QUICK_SPARK
from tests.work_units import UnitScheduling, sort_longest_first

MARKED = {"kafka": ("kafka",), "spark": ("spark",), "parity": ()}
"""Marks by folder below tests/."""


hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("fuzz", max_examples=1000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")

# Every Spark that a test starts, its own or a job's, lives for a minute or two.
for options in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(options, " ".join(QUICK_SPARK))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what runs in the background, and what tests start would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Each process of `pytest -n` has ports of its own: what one has chosen and not yet bound is free to the others."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        ports.CANDIDATES = ports.CANDIDATES[int(worker.removeprefix("gw")) % count :: count]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test in tests/kafka needs brokers, one in tests/spark a session: no test has to say so twice."""
    sort_longest_first(items)
    try_as_the_profile_says(items)
    for item in items:
        for folder, marks in MARKED.items():
            if f"/tests/{folder}/" in str(item.path):
                for mark in marks:
                    item.add_marker(mark)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling:
    """Of `pytest -n`: a process gets whole units of tests."""
    return UnitScheduling(config, log)


@dataclass(frozen=True)
class Clusters:
    """The source and the target of every test that needs brokers."""

    a: LocalCluster
    b: LocalCluster


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Two clusters for the whole run; tests use topics of names of their own."""
    folder = tmp_path_factory.mktemp("clusters")
    a, b = (LocalCluster(alias, folder / alias, java_options=QUICK_KAFKA) for alias in ("a", "b"))
    with started(a, b):
        yield Clusters(a, b)


@pytest.fixture(scope="session")
def docker_cluster() -> Iterator[str]:
    """The bootstrap address of a broker in a container; tests are skipped where no Docker engine answers."""
    if not docker_answers():
        pytest.skip("no Docker engine answers")
    with broker_in_container() as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole run, with the project's own defaults."""
    builder = SparkSession.builder.master("local[2]").appName("tests")
    given = {"spark.jars": ",".join(map(str, fetched(MIRROR_CLIENT)))}
    for name, value in with_lockstep(given, connector_jars).items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()


_numbers = itertools.count()


@pytest.fixture
def unique() -> str:
    """A word that no other test uses, for topic names on the shared clusters."""
    return f"t{next(_numbers)}"
