"""How the code lies in its files: each file and class has a name of its own, and functions fit in the eye."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

from app.local.jars import PROJECT

CODE = ("lockstep", "app", "sinks", "streaming", "bench", "tools")
MOST_OF_A_FUNCTION = 50
"""Lines from `def` on, without the docstring."""

OF_EVERY_FOLDER = frozenset({"__init__.py", "__main__.py", "conftest.py"})
PUBLIC = PurePosixPath("lockstep")
"""Its modules are called after what they offer, and so are some of those that they offer it from."""

KINDS = PurePosixPath("sinks/kinds")
MAP = (PROJECT / "ARCHITECTURE.md").read_text()


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (PROJECT / folder).rglob("*.py")


def doubles(paths: Iterable[str]) -> list[list[str]]:
    """Paths that share a base name which they must not share."""
    by_name: dict[str, list[PurePosixPath]] = defaultdict(list)
    for path in map(PurePosixPath, paths):
        exempt = path.name in OF_EVERY_FOLDER or path.parent == PUBLIC
        if not exempt and KINDS not in path.parent.parents:
            by_name[path.name].append(path)
    return [sorted(map(str, same)) for same in by_name.values() if len(same) > 1]


def public_classes(source: str) -> list[str]:
    """Names of the module's own, without those that begin with an underscore."""
    found = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def shared_names(classes: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """By name, the paths of the modules that each have a class of it; `classes`: by path.

    The folders of the kinds may share names among each other, for what each of them has: they count as one.
    """
    by_name: dict[str, list[str]] = defaultdict(list)
    for path, names in classes.items():
        for name in names:
            by_name[name].append(path)
    folders = {
        name: {KINDS if KINDS in PurePosixPath(one).parent.parents else one for one in paths}
        for name, paths in by_name.items()
    }
    return {name: sorted(by_name[name]) for name, found in folders.items() if len(found) > 1}


def long_functions(source: str) -> list[str]:
    """Name and lines of each that is longer than it may be."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) and first.end_lineno else 0
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - documented
            if lines > MOST_OF_A_FUNCTION:
                found.append(f"{node.name}: {lines} lines")
    return found


def test_a_base_name_occurs_once_or_in_the_folder_of_each_kind() -> None:
    assert doubles(str(path.relative_to(PROJECT)) for path in files(*CODE, "tests")) == []


@pytest.mark.parametrize(
    ("one", "other", "allowed"),
    [
        ("sinks/kinds/acls/rules.py", "sinks/kinds/users/rules.py", True),
        ("sinks/kinds/acls/controller.py", "sinks/every_kind/controller.py", True),
        ("sinks/kinds/acls/survey.py", "sinks/verify/what_to_compare.py", True),
        ("sinks/every_kind/controller.py", "sinks/engine/controller.py", False),
        ("app/job/differences.py", "sinks/verify/differences.py", False),
        ("tests/app/test_x.py", "tests/sinks/test_x.py", False),
        ("lockstep/filters.py", "streaming/filters.py", True),
        ("app/__init__.py", "sinks/__init__.py", True),
    ],
)
def test_two_files_of_one_name_are_noticed_unless_each_folder_has_one_or_users_name_them(
    one: str, other: str, allowed: bool
) -> None:
    assert doubles([one, other]) == ([] if allowed else [sorted([one, other])])


def test_a_public_class_has_a_name_of_its_own_or_is_what_each_kind_has() -> None:
    assert shared_names({str(p.relative_to(PROJECT)): public_classes(p.read_text()) for p in files(*CODE)}) == {}


@pytest.mark.parametrize(
    ("one", "other", "allowed"),
    [
        ("sinks/kinds/acls/writer.py", "sinks/kinds/users/writer.py", True),
        ("sinks/kinds/acls/survey.py", "sinks/verify/what_to_compare.py", False),
        ("sinks/every_kind/controller.py", "sinks/kinds/acls/controller.py", False),
        ("app/job/batch.py", "streaming/query.py", False),
    ],
)
def test_two_classes_of_one_name_are_noticed_unless_each_kind_has_one(one: str, other: str, allowed: bool) -> None:
    found = {path: public_classes("class Survey: ...\nclass _Own: ...") for path in (one, other)}
    assert shared_names(found) == ({} if allowed else {"Survey": sorted([one, other])})


def test_every_function_of_the_code_fits_in_the_eye() -> None:
    found = {str(path.relative_to(PROJECT)): long_functions(path.read_text()) for path in files(*CODE)}
    assert {path: functions for path, functions in found.items() if functions} == {}


@pytest.mark.parametrize(("lines", "noticed"), [(MOST_OF_A_FUNCTION, False), (MOST_OF_A_FUNCTION + 1, True)])
def test_a_docstring_does_not_count_in_the_length_of_a_function(lines: int, noticed: bool) -> None:
    body = "\n".join(["    pass"] * (lines - 1))
    assert bool(long_functions(f'def f():\n    """Says\n    much."""\n{body}\n')) is noticed


NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")


def test_the_map_has_every_folder_of_the_code() -> None:
    named = {name.rstrip("/") for name in NAMED.findall(MAP) if name.endswith("/")}
    folders = {path.parent.relative_to(PROJECT) for path in files(*CODE) if path.read_text().strip()}
    in_a_kind = {folder for folder in folders if KINDS in PurePosixPath(folder).parents}
    assert sorted(str(one) for one in folders - in_a_kind if not {str(one), one.name} & named) == []


def test_every_module_that_the_map_names_is_there() -> None:
    modules = {str(path.relative_to(PROJECT)) for path in files(*CODE, "tests")}
    named = [name for name in NAMED.findall(MAP) if name.endswith(".py")]
    assert [name for name in named if not any(f"/{module}".endswith(f"/{name}") for module in modules)] == []


def test_every_path_that_the_map_names_in_full_is_there() -> None:
    paths = [name for name in NAMED.findall(MAP) if PurePosixPath(name).parts[0] in (*CODE, "tests", "conf", "docs")]
    assert [path for path in paths if not (PROJECT / path).exists()] == []


PREFIX_OF_A_VALUE = re.compile(
    r'f"(?:cluster \{[^{}]*\}: \{(?:error|said|fault|reason)|\{[^{}]*flow[^{}]*\}: \{error)\b'
)
"""A message of an error behind the name of a cluster or a flow, with which it may begin already."""


def test_errors_get_the_name_of_a_cluster_or_a_flow_in_one_place() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for path in files("app", "sinks", "streaming")
        for line in path.read_text().splitlines()
        if PREFIX_OF_A_VALUE.search(line)
    ]
    assert found == [], "use streaming.errors.prefixed"


def test_a_doubled_prefix_is_seen() -> None:
    assert PREFIX_OF_A_VALUE.search('raise X(f"cluster {self._admin.alias}: {said}; {needed}")')
    assert PREFIX_OF_A_VALUE.search('complain(f"{one.flow.name}: {error}")')
    assert not PREFIX_OF_A_VALUE.search('f"cluster {alias}: no address of {alias}"')
