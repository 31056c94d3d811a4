"""The engine gets kinds as values: it names none, and imports no kind's folder."""

from __future__ import annotations

import ast

import pytest

from app.local.jars import PROJECT
from sinks.model.registry import Kind

ENGINE = PROJECT / "sinks" / "engine"
FOLDERS = tuple(sorted({f"sinks.kinds.{kind.row.package}" for kind in Kind}))


def kinds_named(source: str) -> list[str]:
    """Members of `Kind`, kinds by their words, and imports from a kind's folder, as they are in the source."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="Kind"), attr=member) if member in Kind.__members__:
                found.append(f"Kind.{member}")
            case ast.Call(func=ast.Name(id="Kind"), args=[ast.Constant(value=word)]):
                found.append(f"Kind({word!r})")
            case ast.ImportFrom(module=str(module)) if module.startswith(FOLDERS):
                found.append(module)
    return found


def test_the_engine_names_no_kind() -> None:
    found = {path.name: kinds_named(path.read_text()) for path in ENGINE.rglob("*.py")}
    assert {name: kinds for name, kinds in found.items() if kinds} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if change.kind is Kind.TOPIC: ...", ["Kind.TOPIC"]),
        ('known = Kind("acl")', ["Kind('acl')"]),
        ("from sinks.kinds.offsets.sync_history import History", ["sinks.kinds.offsets.sync_history"]),
        ("from sinks.every_kind.listing import Listed\nkinds = [kind for kind in Kind if kind.row.owned]", []),
        ("kind = Kind(name)", []),
    ],
)
def test_a_kind_that_is_named_is_noticed(source: str, found: list[str]) -> None:
    assert kinds_named(source) == found
