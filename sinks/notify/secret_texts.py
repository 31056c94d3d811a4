"""Texts of others, an error of a plug-in say, with the secrets taken out."""

from __future__ import annotations

from collections.abc import Mapping

HIDDEN = "[hidden]"


def without_secrets(text: str, secrets: Mapping[str, str | None]) -> str:
    """A text of a broker's with these values hidden, should it repeat one."""
    for value in sorted(filter(None, secrets.values()), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text
