"""A failover that does not wait for the source: the loss is agreed to and kept before the flow ends."""

from __future__ import annotations

import math
from collections.abc import Callable

from sinks.failover.fenced_topics import check_names
from sinks.failover.predicted_loss import TYPED_UNKNOWN, Prediction, predict
from sinks.failover.scene import Scene
from sinks.ledger.failover_record import Command, FailoverRecord, NotNow, State
from streaming.message_words import first_names, number_of

ANY_LOSS = math.inf
"""Accepts any loss, even an unknown one."""


def failover(
    scene: Scene,
    *,
    accept_loss: float | None,
    agreed: Callable[[Prediction], None],
) -> FailoverRecord:
    """Ends the flow although records may be missing. `agreed` raises unless the operator agrees to the prediction.

    If the source answers, `accept_loss` must be at least the count, or ANY_LOSS if the count is unknown.
    Raises NotNow, LockstepError.
    """
    if done := scene.journal.has_done(State.FAILED_OVER):
        return done
    known = scene.journal.record
    scene.journal.check(Command.FAIL_OVER)
    if known.doing is not Command.FAIL_OVER:
        prediction = predict(scene)
        if prediction.whole:
            check_names(scene.settings, scene.listed().desired.shared)
        check_loss(scene, prediction, accept_loss)
        agreed(prediction)
    scene.journal.begin(Command.FAIL_OVER)
    return scene.journal.run(scene.steps())


def check_loss(scene: Scene, prediction: Prediction, accept_loss: float | None) -> None:
    """Raises NotNow where the source answers and its loss was not accepted, or less than is predicted."""
    if accept_loss is None:
        if scene.source_answers:
            raise NotNow(_why_to_accept(scene.settings.flow.source, prediction))
        return
    records = prediction.records
    if records is None and accept_loss < ANY_LOSS:
        of = first_names(sorted(map(str, prediction.unknown))) or "any topic"
        raise NotNow(
            f"it is unknown how many records of {of} are lost, and --accept-loss is {accept_loss:.0f}. "
            f"`--accept-loss {TYPED_UNKNOWN}` accepts it"
        )
    if records is not None and records > accept_loss:
        raise NotNow(f"{number_of(records, 'record')} would be lost, and --accept-loss is {accept_loss:.0f}")


def _why_to_accept(source: str, prediction: Prediction) -> str:
    if prediction.whole:
        return (
            f"{source} answers, and `lockstep cutover` loses no record. To fail over all "
            f"the same, say --accept-loss with at least {prediction.typed}"
        )
    silent = first_names(sorted(map(str, prediction.unanswered))) or "its records"
    return (
        f"{source} answers, but not for {silent}. Once its brokers are back, `lockstep cutover` loses no "
        f"record. To fail over without them, say --accept-loss {prediction.typed}"
    )
