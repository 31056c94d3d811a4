"""The settings of a flow's ACLs and SCRAM users: filters and mapping parsed, the provider of passwords made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from app.credentials.credential_providers import load_provider
from app.properties import keys
from app.properties.keys import Key
from app.properties.mistakes import Findings
from app.properties.places import Properties
from sinks.flow_settings import AclRules
from sinks.kinds.acls.principals import PrincipalFilter, PrincipalMapping
from sinks.kinds.users.credentials import CredentialProvider
from streaming.errors import LockstepError
from streaming.flow import Flow

T = TypeVar("T")

LISTS: tuple[Key[tuple[str, ...]], ...] = (keys.ACL_PRINCIPALS, keys.ACL_PRINCIPALS_EXCLUDE)


def acl_rules(properties: Properties, flow: Flow, findings: Findings) -> AclRules | None:
    """How ACLs are synced; None where a list or a rule is none. Each mistake is noted at its own line."""
    lists = {key.name: _listed(properties, key, flow) for key in LISTS}
    texts = {**lists, keys.ACL_MAPPING.name: properties.get(keys.ACL_MAPPING, flow)}

    def made(by: Callable[[], T]) -> T | None:
        try:
            return by()
        except LockstepError as error:
            # The parsers name the key, as every finding does.
            name = next((name for name in texts if str(error).startswith(f"{name}:")), keys.ACL_MAPPING.name)
            findings.mistake(properties.entry(name, flow), str(error).removeprefix(f"{name}: "), name)
            return None

    principals = made(lambda: PrincipalFilter(lists))
    mapping = made(lambda: PrincipalMapping.parse(texts[keys.ACL_MAPPING.name]))
    if principals is None or mapping is None:
        return None
    full, deletes = properties.get(keys.SYNC_FULL_ACL, flow), properties.get(keys.ACL_DELETES, flow)
    return AclRules(full, deletes, principals, mapping)


def _listed(properties: Properties, key: Key[tuple[str, ...]], flow: Flow) -> str:
    words: tuple[str, ...] = properties.get(key, flow)
    return ",".join(words)


def credential_provider(properties: Properties, flow: Flow, findings: Findings) -> CredentialProvider | None:
    """Who knows the passwords of SCRAM users; None where users are not synced, or nothing is set up for it."""
    named: Any = properties.get(keys.CREDENTIAL_PROVIDER)
    default = named == keys.CREDENTIAL_PROVIDER.default
    if not properties.get(keys.SYNC_FULL_ACL, flow) or (default and not properties.get(keys.ENCODER_SECRET)):
        return None
    try:
        return load_provider(properties.of_flow(flow))
    except LockstepError as error:
        entry = properties.entry(keys.CREDENTIAL_PROVIDER.name, flow) or properties.entry(keys.ENCODER_SECRET.name)
        findings.mistake(entry, str(error), entry.key if entry else keys.CREDENTIAL_PROVIDER.name)
        return None
