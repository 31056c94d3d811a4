"""How many examples a property test tries: what it asks for in `make test`, and ten times as many in `make fuzz`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

USUAL = 100
"""The examples of the profile "same", and hypothesis's own default."""

OWN = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps what `@settings` says of a test; no public name leads there once the test is made."""


def try_as_the_profile_says(items: list[pytest.Item]) -> None:
    """A test's own `max_examples` would hold whatever the profile says: it is multiplied."""
    times = settings.default.max_examples // USUAL
    if times > 1:
        for item in items:
            multiply(getattr(item, "function", None), getattr(item, "cls", None), times)


def multiply(function: Callable[..., Any] | None, cls: type | None, times: int) -> None:
    """Of a test with settings of its own, or of a state machine's class."""
    own = getattr(function, OWN, None)
    if own is not None:
        setattr(function, OWN, settings(own, max_examples=own.max_examples * times))
    machine = getattr(cls, "settings", None)
    if cls is not None and isinstance(machine, settings):
        cls.settings = settings(machine, max_examples=machine.max_examples * times)  # type: ignore[attr-defined]  # seen above
