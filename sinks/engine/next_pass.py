"""When a flow wants its next pass, where nothing else asks for one. Pure: times are monotonic seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sinks.engine.attempts import Attempts
from sinks.engine.model import Kind
from sinks.kinds.controller import Controller, ControllerStatus

NEVER = float("inf")


def due_at(
    controllers: Sequence[Controller],
    status: Iterable[ControllerStatus],
    attempts: Attempts,
    idle: Collection[Kind],
    others: Iterable[float],
) -> float:
    """The earliest of what controllers want, what is tried again, and `others`.

    A controller whose kinds are all `idle` wants nothing: what it could not do now it cannot do before they wake.
    """
    wanted = list(others)
    for controller, one in zip(controllers, status, strict=True):
        retry = attempts.due(controller)
        if retry is not None:
            wanted.append(retry)
        elif not controller.kinds <= set(idle):
            wanted.append(one.due)
    return min(wanted, default=NEVER)
