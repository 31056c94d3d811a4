"""`sasl.jaas.config` of a broker: `listener.name.<listener>.<mechanism>.sasl.jaas.config`, checked before it is sent.

A broker that cannot read it, or ignores it, says so in its log only. Source: KIP-226, `JaasContext.loadServerContext`.
No error repeats a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sinks.kafka.security.jaas import parse_jaas
from sinks.kafka.security.sasl import JAAS
from streaming.errors import LockstepError

FORM = f"listener.name.<listener>.<mechanism>.{JAAS}"
LISTENER_AND_MECHANISM = re.compile(rf"listener\.name\.([^.]+)\.([^.]+)\.{re.escape(JAAS)}")

LOGIN_MODULE_OF: Mapping[str, str] = {
    "plain": "PlainLoginModule",
    "scram-sha-256": "ScramLoginModule",
    "scram-sha-512": "ScramLoginModule",
    "oauthbearer": "OAuthBearerLoginModule",
}
"""Kafka's own login modules by mechanism; another class may take the place of each."""


def jaas_objection(name: str, value: str) -> str | None:
    """Why a broker would not take this login, or would ignore it; None where it is sound, or no login at all."""
    if name != JAAS and not name.endswith(f".{JAAS}"):
        return None
    parts = LISTENER_AND_MECHANISM.fullmatch(name)
    if parts is None:
        return f"brokers would ignore it: write {FORM}, e.g. listener.name.sasl_ssl.scram-sha-512.{JAAS}"
    if name != name.lower():
        return f"brokers would ignore it: write listener and mechanism in lower case, {name.lower()}"
    return _form(parts[2], value)


def jaas_note(name: str, listeners: str) -> str | None:
    """What to know of a login for a listener that runs: brokers take it and show it, and use it after a restart.

    `listeners`: the broker's, in force.
    """
    running = {listener.partition("://")[0].strip().lower() for listener in listeners.split(",")}
    parts = LISTENER_AND_MECHANISM.fullmatch(name)
    if parts is None or parts[1] not in running:
        return None
    return f"the listener {parts[1]} runs already: brokers use its new login from their next start on"


def _form(mechanism: str, value: str) -> str | None:
    try:
        module = parse_jaas(value)
    except LockstepError as error:
        return str(error).replace("a client has one", "there must be one")
    wanted = LOGIN_MODULE_OF.get(mechanism)
    if wanted is not None and module.simple_name != wanted and module.simple_name in LOGIN_MODULE_OF.values():
        return f"its login module is {module.simple_name}, that of {mechanism} is {wanted}"
    if mechanism == "plain" and module.simple_name == wanted:
        return _plain(module.options)
    return None


def _plain(options: Mapping[str, str]) -> str | None:
    # Without a single user nobody gets in at the listener, and no broker complains.
    names = {"username", "password"}
    if not any(name.startswith("user_") for name in options) and not options.keys() & names:
        return 'it has no user: write them as user_NAME="PASSWORD"'
    return None
