"""A pair of secured clusters, which end with the tests that need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.secured import Pair, secured_pair


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two secured clusters, for jobs with names of their own."""
    with secured_pair(tmp_path_factory.mktemp("secured")) as pair:
        yield pair
