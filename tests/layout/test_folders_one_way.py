"""Folders depend one way at every level: no two siblings import each other, however many others lie between."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from app.local.jars import PROJECT

ROOTS = ("lockstep", "app", "sinks", "streaming")


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(source: str, modules: Iterable[str]) -> Iterator[str]:
    """Modules of ours that this text imports, also within functions."""
    known = frozenset(modules)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def siblings(one: str, other: str) -> tuple[str, str] | None:
    """The two below their common folder that hold these modules; None where one holds the other."""
    here, there = one.split("."), other.split(".")
    for depth, (mine, yours) in enumerate(zip(here, there, strict=False), 1):
        if mine != yours:
            return ".".join(here[:depth]), ".".join(there[:depth])
    return None


def circles(sources: Mapping[str, str]) -> list[str]:
    """`sources`: by module."""
    needs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, source in sources.items():
        for other in imported(source, sources):
            if other in sources and (pair := siblings(module, other)) is not None:
                needs[pair[0].rpartition(".")[0]][pair[0]].add(pair[1])
    found = []
    for graph in needs.values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found.append(" -> ".join(error.args[1]))
    return found


def test_no_two_siblings_import_each_other() -> None:
    paths = [path for root in ROOTS for path in (PROJECT / root).rglob("*.py")]
    sources = {module_of(str(path.relative_to(PROJECT))): path.read_text() for path in paths}
    assert circles(sources) == []


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({"a.x.one": "from a.y.two import t", "a.y.two": ""}, 0),
        ({"a.x.one": "from a.y import two", "a.x.other": "", "a.y.two": "from a.x.other import t"}, 1),
        ({"a.x.m": "import a.y.m", "a.y.m": "import a.z.m", "a.z.m": "def f():\n    import a.x.m"}, 1),
        ({"a.x": "from a.y.m import t", "a.y.m": "from a.z import t", "a.z": ""}, 0),
    ],
)
def test_a_circle_is_noticed(sources: Mapping[str, str], found: int) -> None:
    assert len(circles(sources)) == found
