"""Every refusal of the failover's commands says what to type."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from streaming.errors import LockstepError, WrongUsage

COMMANDS = ("failover_commands", "drill_command", "preflight_command", "plan_command")
GENERAL = LockstepError.code


def below(error: type[LockstepError]) -> Iterator[type[LockstepError]]:
    for one in error.__subclasses__():
        yield one
        yield from below(one)


def refusals() -> list[type[LockstepError]]:
    """Errors with a code of their own that these commands can end with, by what they import.

    Of a wrong command or file, the message has each mistake and its line.
    """
    for name in COMMANDS:
        importlib.import_module(f"app.cli.{name}")
    ours = ("app.", "sinks.", "streaming.")
    return sorted(
        (
            one
            for one in {*below(LockstepError)}
            if one.code != GENERAL and one.__module__.startswith(ours) and not issubclass(one, WrongUsage)
        ),
        key=lambda one: one.__name__,
    )


@pytest.mark.parametrize("refusal", refusals(), ids=lambda one: one.__name__)
def test_refusal_says_what_to_type(refusal: type[LockstepError]) -> None:
    remedy = refusal.remedy or ""
    assert "`lockstep " in remedy or "`--" in remedy or "run the command again" in remedy or "docs/" in remedy
