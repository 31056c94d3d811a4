"""What `lockstep.overrides.allowed` opens, in docs/safety.md: `python -m app.docs_pages.safety_page` writes it."""

from __future__ import annotations

from collections.abc import Mapping

from app.docs_pages.made_part import with_made_part
from app.local.jars import PROJECT
from app.overrides.overridable import ADDRESS_ENDINGS, CLASS_ENDINGS, CLOSED, REFERENCES, closed
from app.properties.keys import OPENABLE, TABLE

SAFETY_PAGE = PROJECT / "docs" / "safety.md"
BEGIN, END = "<!-- opened: made from the code by `make docs` -->", "<!-- end of opened -->"

BESIDES: Mapping[str, tuple[str, ...]] = {"addresses": ADDRESS_ENDINGS, "classes": CLASS_ENDINGS}
"""How keys of plug-ins end that a word opens as well."""


def opened() -> str:
    """The words, and the keys that each opens, as a table."""
    return "\n".join(["| word | opens |", "|---|---|", *(f"| `{word}` | {_keys(word)} |" for word in OPENABLE)])


def _keys(word: str) -> str:
    if word == REFERENCES:
        return "values such as `${file:PATH:KEY}`, of any key that may be overridden"
    keys = [name for name in TABLE if CLOSED[word](name) and closed(name, False, OPENABLE) is None]
    of_plugins = f"; keys of plug-ins that end in {_listed(BESIDES[word])}" if word in BESIDES else ""
    return _listed(keys) + of_plugins


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The page with this table as the code has it."""
    return with_made_part(SAFETY_PAGE.read_text(encoding="utf-8"), BEGIN, opened(), END)


if __name__ == "__main__":
    SAFETY_PAGE.write_text(page(), encoding="utf-8")
