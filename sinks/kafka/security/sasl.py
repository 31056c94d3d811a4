"""The `sasl.` settings of a Java client in librdkafka's words.

| Java                                              | librdkafka                                                  |
|---------------------------------------------------|-------------------------------------------------------------|
| `sasl.mechanism`: PLAIN, SCRAM-SHA-256, -512      | the same, with the login's `sasl.username`, `sasl.password` |
| OAUTHBEARER                                       | the same; Java logs in, and is asked for the token          |
| GSSAPI: Krb5LoginModule with a keytab             | `sasl.kerberos.keytab`, `sasl.kerberos.principal`           |
| GSSAPI: Krb5LoginModule with a ticket cache       | the tickets of Kerberos' default cache, not renewed         |
| times and buffers of a login, settings of brokers | left out                                                    |
| all others                                        | NoRecords, which names them                                 |

Source: `SaslConfigs`; Java's `Krb5LoginModule`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sinks.faults import NoRecords
from sinks.kafka.security.jaas import LoginModule, parse_jaas
from streaming.errors import LockstepError

JAAS: Final = "sasl.jaas.config"
OAUTH: Final = "OAUTHBEARER"
KERBEROS: Final = "GSSAPI"
MODULES: Mapping[str, str] = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTH: "OAuthBearerLoginModule",
    KERBEROS: "Krb5LoginModule",
}
"""The login module of each mechanism."""

HANDLERS = frozenset({"sasl.login.callback.handler.class", "sasl.client.callback.handler.class"})
KAFKAS: Final = "org.apache.kafka.common.security."
SERVICE: Final = "sasl.kerberos.service.name"
TRANSLATED = frozenset({JAAS, "sasl.mechanism"})
UNTRANSLATED = (
    "sasl.kerberos.",
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.",
)
"""Prefixes of settings that are left out: each tunes Java's client, or another mechanism."""

PRINCIPAL = re.compile(r"[\w./@][\w./@-]*")
KEYTAB = re.compile(r'[^"$`\\\n]+')
"""A keytab that may stand between double quotes in librdkafka's command line of `kinit`."""

WHAT_NEEDS_RECORDS: Final = (
    "Lockstep can ask and change this cluster, but cannot read or write its records. On a target that stops the job "
    "and every command that writes, because the ledger is a topic there. On a source it stops preflight, cutover, "
    "failover and drills, and matched offsets: set lockstep.offset.translation=conservative"
)
IAM: Final = (
    "write sasl.mechanism=OAUTHBEARER, which the same brokers take, with "
    "sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler, which is in "
    "the same jar"
)


def sasl_config(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns librdkafka's configuration of a login.

    Raises LockstepError that names the Java key and no secret, NoRecords for what only Java has.
    """
    mechanism = properties.get("sasl.mechanism", KERBEROS)
    if mechanism not in MODULES:
        remedy = IAM if mechanism == "AWS_MSK_IAM" else f"librdkafka has {', '.join(MODULES)}"
        raise NoRecords(f"sasl.mechanism={mechanism} has no counterpart in librdkafka: {remedy}. {WHAT_NEEDS_RECORDS}")
    module = _module(properties, mechanism)
    if mechanism == OAUTH:
        return {"sasl.mechanism": mechanism}
    config = _kerberos(module.options, properties) if mechanism == KERBEROS else _user(module.options)
    for name, value in properties.items():
        if name.startswith("sasl.") and value and not _known(name, value):
            raise NoRecords(f"{name} has no counterpart in librdkafka. {WHAT_NEEDS_RECORDS}")
    return {"sasl.mechanism": mechanism, **config}


def _known(name: str, value: str) -> bool:
    if name in HANDLERS:
        return value.startswith(KAFKAS)
    return name in TRANSLATED or name.startswith(UNTRANSLATED)


def _module(properties: Mapping[str, str], mechanism: str) -> LoginModule:
    if JAAS not in properties:
        raise LockstepError(f"{JAAS} is missing: sasl.mechanism={mechanism} needs the login of a {MODULES[mechanism]}")
    try:
        module = parse_jaas(properties[JAAS])
    except LockstepError as error:
        raise LockstepError(f"{JAAS}: {error}") from None
    if module.simple_name != MODULES[mechanism]:
        # The module that is named is not shown: it may be part of a secret.
        raise LockstepError(f"{JAAS}: its login module is not {MODULES[mechanism]}, that of sasl.mechanism={mechanism}")
    return module


def _user(options: Mapping[str, str]) -> dict[str, str]:
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise LockstepError(f"{JAAS} lacks the option {' and '.join(missing)}")
    if options.get("tokenauth", "false").lower() == "true":
        raise NoRecords(f"{JAAS}: tokenauth: librdkafka cannot log in with a delegation token. {WHAT_NEEDS_RECORDS}")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _kerberos(options: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    service = properties.get(SERVICE) or options.get("serviceName")
    if not service:
        raise LockstepError(f"{SERVICE} is missing: it is the first part of the brokers' principals, usually kafka")
    config = {SERVICE: service}
    if options.get("useKeyTab", "false").lower() != "true":
        return config | {"sasl.kerberos.min.time.before.relogin": "0"}
    for option, form in (("keyTab", KEYTAB), ("principal", PRINCIPAL)):
        if not options.get(option):
            raise LockstepError(f"{JAAS} lacks the option {option}")
        if not form.fullmatch(options[option]):
            raise NoRecords(
                f"{JAAS}: its option {option} has a character that is special to librdkafka's shell. "
                f"{WHAT_NEEDS_RECORDS}"
            )
    keytab = options["keyTab"].removeprefix("file:")
    return config | {"sasl.kerberos.keytab": keytab, "sasl.kerberos.principal": options["principal"]}
