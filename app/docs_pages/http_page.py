"""The API's table in docs/http.md, made from its operations: `python -m app.docs_pages.http_page` writes it."""

from __future__ import annotations

from app.docs_pages.made_part import with_made_part
from app.http.openapi import API_BASE, OPERATIONS, Operation
from app.local.jars import PROJECT

HTTP_PAGE = PROJECT / "docs" / "http.md"
BEGIN, END = "<!-- api: made from the code by `make docs` -->", "<!-- end of api -->"


def operations() -> str:
    """What each path answers, as a table."""
    return "\n".join(["| path | answers | filter |", "|---|---|---|", *map(_row, OPERATIONS)])


def _row(operation: Operation) -> str:
    name = f"`{operation.filter[0]}`" if operation.filter else "`search`" if operation.paged else ""
    return f"| `{API_BASE}{operation.path}` | {operation.summary} | {name} |".replace("  ", " ")


def page() -> str:
    """The page with its API as the code has it."""
    return with_made_part(HTTP_PAGE.read_text(encoding="utf-8"), BEGIN, operations(), END)


if __name__ == "__main__":
    HTTP_PAGE.write_text(page(), encoding="utf-8")
