"""The part of a page that is made from the code; the rest of it is written by hand."""

from __future__ import annotations


def with_made_part(page: str, begin: str, made: str, end: str) -> str:
    """The page with `made` in place of what stood between the two markers, each once in it."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"
