"""Which names no override may have at all, and whose values are not shown. Pure."""

from __future__ import annotations

from collections.abc import Callable

from app.properties import keys
from app.properties.keys import TABLE, KeyScope, Live
from app.properties.known import ENDS, ROLES, flow_names, kafka_names, top_names
from sinks.secret_values import is_secret

CLIENT_SETTINGS = (*(f"{role}." for role in ROLES), *(f"{end}.{of}." for end in ENDS for of in (*ROLES, "cluster")))
"""What a flow's own client settings begin with: whatever comes after it, a client gets it."""

NAMES_THE_LEDGER = frozenset(key.name for key in (keys.POLICY, keys.SEPARATOR, keys.INTERNAL_SEPARATOR))

NameRule = tuple[Callable[[str], bool], str]
"""Which names are refused, and why."""

NAME_RULES: tuple[NameRule, ...] = (
    (
        lambda name: name in NAMES_THE_LEDGER,
        "it names the ledger in which overrides are kept: change it in the properties file",
    ),
    (
        lambda name: name.startswith(("lockstep.ledger.", "lockstep.audit.")),
        "it is about the ledger in which overrides are kept: change it in the properties file",
    ),
    (
        lambda name: name.startswith("password.encoder."),
        "passwords in the ledger are encoded with it: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].scope is not KeyScope.FLOW,
        "it holds for the whole job, not for a flow: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].live is Live.JOB,
        "it cannot change while the job runs: change it in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and (name in kafka_names()["client"] or name.startswith(CLIENT_SETTINGS)),
        "client settings cannot change while the job runs: change them in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and name in flow_names() | top_names(),
        "it is for MM2 alone: Lockstep does not read it",
    ),
)


def is_hidden(name: str) -> bool:
    """Whether a value is not shown: that of a secret, and of a plug-in's own key, which might be one."""
    return is_secret(name) or name not in TABLE
