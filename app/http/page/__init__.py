"""The status page of a running job, for people; the same figures as `lockstep status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

REFRESH = 5
"""Seconds until the page asks for itself again."""


@cache
def _template() -> Template:
    # Reasons hold texts of brokers and names of topics: all of it is escaped.
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True).get_template(
        "status.html"
    )


def status_page(flows: Sequence[Mapping[str, Any]], version: str) -> str:
    """HTML of the document of `lockstep status`; needs nothing from anywhere else."""
    return _template().render(flows=flows, version=version, refresh=REFRESH)
