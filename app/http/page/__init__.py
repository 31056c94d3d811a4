"""The status page of a running job, for people; the same figures as `lockstep status`."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

REFRESH = 5
"""Seconds until the page asks for itself again."""

STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def _style_source() -> str:
    page = (Path(__file__).parent / "status.html").read_text(encoding="utf-8")
    styles = (base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in STYLE.findall(page))
    return " ".join(f"'sha256-{digest}'" for digest in styles)


STYLE_SOURCE = _style_source()
"""What a Content-Security-Policy must allow for the page to look as it does: the hash of its style, no other one."""


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
