"""Writes the generated pages and tables in docs/: `python -m app.docs_pages`, which `make docs` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from app.docs_pages import configuration_page, metrics_page, rights_page
from app.docs_pages.made_tables import MADE, with_made_part
from app.local.jars import PROJECT

PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration_page.page,
    "metrics.md": metrics_page.page,
    "rights.md": rights_page.page,
    **{page: partial(with_made_part, page) for page in MADE},
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (PROJECT / "docs" / name).write_text(page(), encoding="utf-8")
