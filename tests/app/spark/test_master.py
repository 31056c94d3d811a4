"""Whether a Spark standalone master is there, by its address."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from app.spark.spark_session import is_reached


@pytest.fixture
def listening() -> Iterator[str]:
    """An address that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_one_of_several_masters_is_enough(listening: str, closed: str) -> None:
    assert is_reached(f"spark://{closed},{listening}")


def test_a_master_that_refuses_connections_is_not_reached(closed: str) -> None:
    assert not is_reached(f"spark://{closed}")


def test_an_address_without_a_port_is_not_reached() -> None:
    assert not is_reached("spark://127.0.0.1")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://127.0.0.1:9", ""])
def test_masters_of_other_kinds_are_left_to_spark(master: str) -> None:
    assert is_reached(master)
