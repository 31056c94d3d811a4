"""What to do about a reason without a remedy of its own, by the words that Kafka and Lockstep use for it. Pure.

What stopped a flow has one (`streaming.errors`). A reason may begin with any topic's name: Kafka's codes are looked for
as they are written, and no word that stands for an error alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Remedy(NamedTuple):
    """`words`: found anywhere in a reason; `advice`: a sentence."""

    words: re.Pattern[str]
    advice: str


def _remedy(words: str, advice: str) -> Remedy:
    return Remedy(re.compile(rf"(?<![\w.-])(?:{words})"), advice)


REMEDIES: Sequence[Remedy] = (
    _remedy("neither side", "Set them on the source, or read docs/configs.md on defaults that differ."),
    _remedy("paused[:;]", "Resume it once what it was paused for is over; `lockstep audit` has what was done before."),
    _remedy(
        r"\w*AUTHORIZATION_FAILED|no right to|grant ",
        "Grant it: `lockstep rights --principal …` prints the commands, `lockstep validate --rights` what is missing.",
    ),
    _remedy(
        "POLICY_VIOLATION",
        "Allow it in the target's policy, or name the config in config.properties.exclude.",
    ),
    _remedy(
        "INVALID_CONFIG|the brokers of .* (do not know|take no) ",
        "The target's version does not take this value: change it on the source, or name the config in "
        "config.properties.exclude.",
    ),
    _remedy(
        "max.delete|deletion limit|would delete",
        "Make sure that these deletions are meant, then run `lockstep apply --force`.",
    ),
    _remedy("SECURITY_DISABLED", "The cluster has no authorizer: configure one, or turn this kind off."),
    _remedy(
        "INVALID_REPLICATION_FACTOR|NOT_ENOUGH_REPLICAS",
        "Set replication.factor to what the target's brokers can hold.",
    ),
    _remedy("the ledger ", "Read docs/safety.md first: the flow writes nothing until its ledger is in order."),
    _remedy(
        "cluster.id|another cluster|pinned",
        "Make sure where the address leads: docs/safety.md, before anything else is done.",
    ),
    _remedy(
        "no answer|not answer|unreachable|timed out|_TRANSPORT|refuses connections",
        "See whether the cluster runs and can be reached from the job's machine; it goes on by itself.",
    ),
    _remedy(
        "stands by|led .* and was not heard", "Ask the job that leads; this one takes over by itself once it ends."
    ),
    _remedy("heartbeat|MirrorMaker", "See whether MirrorMaker 2 runs, and what its log says."),
    _remedy("password|credential", "See what the credential store knows: `lockstep credentials list`."),
    _remedy("stands? still while", "See whether MirrorMaker 2's task for them runs: docs/alerts.md."),
    _remedy("MISSING|DUPLICATE|CHANGED|REORDERED|EXTRA", "`lockstep verify TOPIC` says which records: docs/verify.md."),
    _remedy("not made these topics yet", "Start MirrorMaker 2 for this flow; it makes them."),
)
"""Read from the top; the first that fits holds."""

OTHERWISE = "`lockstep plan` shows what differs, the job's log what was tried."


def advice(reason: str | None) -> str:
    """What to do about it."""
    return next((one.advice for one in REMEDIES if one.words.search(reason or "")), OTHERWISE)
