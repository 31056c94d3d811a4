"""The units in which several pytest processes share the tests."""

from __future__ import annotations

import pytest

from app.local.jars import PROJECT
from tests.work_units import LONGEST_FIRST, TOGETHER, rank, unit_of


@pytest.mark.parametrize("path", [*TOGETHER, *LONGEST_FIRST])
def test_what_is_named_is_there(path: str) -> None:
    assert (PROJECT / path).exists()


def test_tests_of_one_file_stay_together_and_so_do_files_that_share_what_is_dear() -> None:
    assert unit_of("tests/app/test_plugins.py::test_x[a::b/c]") == "tests/app/test_plugins.py"
    folder = "tests/kafka/secured_clusters"
    assert unit_of(f"{folder}/test_secured.py::test_x") == unit_of(f"{folder}/test_access_running.py::test_y")
    assert unit_of("tests/kafka/configs_tool/test_configs_jvm.py::test_x") == "three brokers"


def test_units_that_take_longest_are_begun_first() -> None:
    tests = ["tests/sinks/x.py::t", "tests/kafka/x.py::t", "tests/kafka/test_demo.py::t"]
    assert sorted(tests, key=rank) == tests[::-1]
