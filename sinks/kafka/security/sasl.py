"""The `sasl.` settings of a Java client in librdkafka's words.

| Java                                                  | librdkafka                                           |
|-------------------------------------------------------|------------------------------------------------------|
| `sasl.mechanism`                                      | the same: PLAIN, SCRAM-SHA-256, -512, OAUTHBEARER    |
| `sasl.jaas.config`: PlainLoginModule, ScramLoginModule | `sasl.username`, `sasl.password`                     |
| `sasl.jaas.config`: OAuthBearerLoginModule            | `sasl.oauthbearer.method=oidc` and its client        |
| `sasl.oauthbearer.token.endpoint.url`                 | the same; Kafka's client credentials (KIP-768)       |
| `ssl.truststore.*` among its options                  | `https.ca.pem`                                       |
| times and buffers of a login, settings of brokers     | left out                                             |
| all others                                            | an error that names them                             |

Source: `SaslConfigs`, `OAuthBearerLoginCallbackHandler` (its options); KIP-1258 for the newer names of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sinks.kafka.security.jaas import LoginModule, parse_jaas
from sinks.kafka.security.stores import trusted_certificates
from streaming.errors import LockstepError

JAAS: Final = "sasl.jaas.config"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
OAUTH: Final = "OAUTHBEARER"
MODULES: Mapping[str, str] = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTH: "OAuthBearerLoginModule",
}
"""The login module of each mechanism."""

CLIENT_FIELDS: Mapping[str, tuple[str, str]] = {
    "sasl.oauthbearer.client.id": ("clientId", "sasl.oauthbearer.client.credentials.client.id"),
    "sasl.oauthbearer.client.secret": ("clientSecret", "sasl.oauthbearer.client.credentials.client.secret"),
    "sasl.oauthbearer.scope": ("scope", "sasl.oauthbearer.scope"),
}
"""By librdkafka's name: Java's option of the login module, and its newer key, which wins."""

EXTENSION: Final = "extension_"
STORE: Final = "ssl."
HANDLERS = frozenset({"sasl.login.callback.handler.class", "sasl.client.callback.handler.class"})
KAFKAS: Final = "org.apache.kafka.common.security."
TRANSLATED = frozenset({JAAS, TOKEN_URL, "sasl.mechanism", *(newer for _, newer in CLIENT_FIELDS.values())})
UNTRANSLATED = (
    "sasl.kerberos.",
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.clock.skew.",
    "sasl.oauthbearer.expected.",
    "sasl.oauthbearer.jwks.",
    "sasl.oauthbearer.scope.claim.",
    "sasl.oauthbearer.sub.claim.",
)
"""Kerberos' settings say nothing to other mechanisms, and Kerberos itself is refused."""


def sasl_config(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's configuration of a login. Raises LockstepError that names the Java key, and no secret."""
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MODULES:
        raise LockstepError(f"sasl.mechanism={mechanism} is not supported; allowed: {', '.join(MODULES)}")
    for name, value in properties.items():
        if name.startswith("sasl.") and value and not _known(name, value):
            raise LockstepError(f"{name} has no counterpart in librdkafka; it would be ignored: take it out")
    module = _module(properties, mechanism)
    if mechanism == OAUTH:
        return {"sasl.mechanism": mechanism, **_oauth(module.options, properties)}
    return {"sasl.mechanism": mechanism, **_user(module.options)}


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
        # The word in its place is not shown: it may be anything.
        raise LockstepError(f"{JAAS}: its login module is not {MODULES[mechanism]}, that of sasl.mechanism={mechanism}")
    return module


def _user(options: Mapping[str, str]) -> dict[str, str]:
    if options.get("tokenauth", "false").lower() == "true":
        raise LockstepError(f"{JAAS}: tokenauth: librdkafka cannot log in with a delegation token")
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise LockstepError(f"{JAAS}: {' and '.join(missing)} missing among its options")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _oauth(options: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    if not properties.get(TOKEN_URL):
        raise LockstepError(f"{TOKEN_URL} is missing: OAUTHBEARER gets its tokens there, with client credentials")
    if not properties[TOKEN_URL].startswith(("https://", "http://")):
        raise LockstepError(f"{TOKEN_URL} begins with neither https:// nor http://: a token in a file cannot be used")
    if any(name.startswith("unsecuredLogin") for name in options):
        raise LockstepError(f"{JAAS}: unsecured tokens cannot be made here: name a client with clientId, clientSecret")
    config = {"sasl.oauthbearer.method": "oidc", TOKEN_URL: properties[TOKEN_URL]}
    for name, (option, newer) in CLIENT_FIELDS.items():
        if value := properties.get(newer) or options.get(option):
            config[name] = value
        elif option != "scope":
            raise LockstepError(f"{JAAS}: {option} missing among the options of OAuthBearerLoginModule")
    extensions = [f"{name[len(EXTENSION) :]}={value}" for name, value in options.items() if name.startswith(EXTENSION)]
    if extensions:
        config["sasl.oauthbearer.extensions"] = ",".join(extensions)
    return config | _endpoint_trust(options)


def _endpoint_trust(options: Mapping[str, str]) -> dict[str, str]:
    """Whom the client trusts at the token endpoint: Kafka reads it from the login module's own options."""
    store = {name: value for name, value in options.items() if name.startswith(STORE)}
    if others := sorted(name for name in store if not name.startswith("ssl.truststore.")):
        raise LockstepError(f"{JAAS}: {others[0]} has no counterpart in librdkafka for the token endpoint")
    try:
        trusted = trusted_certificates(store)
    except LockstepError as error:
        raise LockstepError(f"{JAAS}: {error}") from error
    return {"https.ca.pem": trusted} if trusted else {}
