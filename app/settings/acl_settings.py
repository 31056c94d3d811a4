"""The settings of a flow's ACLs and SCRAM users: filters and mapping parsed, the provider of passwords made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from app.credentials.credential_providers import load_provider
from app.properties import keys
from app.properties.keys import Key
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties
from app.settings.cluster_sections import cluster_settings
from sinks.engine.model import Kind
from sinks.flow_settings import AclRules
from sinks.kafka.security.own_principal import OwnPrincipal, own_principal
from sinks.kinds.acls.principals import ADOPT, PROTECTED, NamedPrincipals, PrincipalFilter, PrincipalMapping
from sinks.kinds.users.credentials import CredentialProvider
from streaming.errors import LockstepError
from streaming.flow import Flow

T = TypeVar("T")

LISTS: tuple[Key[tuple[str, ...]], ...] = (
    keys.ACL_PRINCIPALS,
    keys.ACL_PRINCIPALS_EXCLUDE,
    keys.ACL_PROTECTED,
    keys.SCRAM_ADOPT,
)
NO_SECRET = (
    f"not enabled: set {keys.ENCODER_SECRET.name}, or another {keys.CREDENTIAL_PROVIDER.name}, so that passwords are "
    "known"
)


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
    known = [own.name for own in own_principals(properties, flow) if own.name]
    protected = made(lambda: NamedPrincipals(PROTECTED, lists[PROTECTED], known))
    adopted = made(lambda: NamedPrincipals(ADOPT, lists[ADOPT]))
    if principals is None or mapping is None or protected is None or adopted is None:
        return None
    full, deletes = properties.get(keys.SYNC_FULL_ACL, flow), properties.get(keys.ACL_DELETES, flow)
    stage = properties.get(keys.ACL_STAGE_WRITES, flow)
    wildcards = properties.get(keys.ACL_WILDCARD_DENIES, flow)
    return AclRules(full, deletes, principals, mapping, protected, adopted, stage, wildcards)


def own_principals(properties: Properties, flow: Flow) -> list[OwnPrincipal]:
    """What the job is to the target's brokers, in each role in which it connects, each once."""
    target = cluster_settings(properties, flow.target, flow)
    return list(dict.fromkeys(own_principal(client) for client in (target.admin, target.consumer, target.producer)))


def disabled_reasons(properties: Properties, flow: Flow, findings: Findings) -> dict[Kind, str]:
    """Why SCRAM users are not synced where `sync.full.acl.enabled` asks for them; a warning says it, too."""
    default = properties.get(keys.CREDENTIAL_PROVIDER) == keys.CREDENTIAL_PROVIDER.default
    if not properties.get(keys.SYNC_FULL_ACL, flow) or not default or properties.get(keys.ENCODER_SECRET):
        return {}
    entry = properties.entry(keys.SYNC_FULL_ACL.name, flow)
    findings.warn(entry, f"the SCRAM users of {flow.name} are {NO_SECRET}")
    return {Kind.SCRAM_USER: NO_SECRET}


def check_principals(properties: Properties, flow: Flow, enabled: Mapping[Kind, bool], findings: Findings) -> None:
    """Whether the job's own principal is known, where the source could otherwise lock the job out of the target."""
    written = properties.entry(keys.ACL_PROTECTED.name, flow)
    if written is not None or not any(enabled.get(kind) for kind in Kind if kind.row.of_principals):
        return
    doubt = next((own.doubt for own in own_principals(properties, flow) if own.doubt), None)
    if doubt is not None:
        findings.warn(
            properties.entry(keys.ENABLED.name, flow),
            f"the principal that Lockstep is on {flow.target} is not known for certain ({doubt}), so that an ACL of "
            f"the source could lock it out: name it, and {flow.target}'s super users, in {keys.ACL_PROTECTED.name}",
            keys.ACL_PROTECTED.name,
        )


def check_full(properties: Properties, flow: Flow, findings: Findings) -> None:
    """Whether a file that asks for ACLs says which: without a word, those that MM2 copies, which let nobody write."""
    asked, full = (properties.entry(key.name, flow) for key in (keys.SYNC_TOPIC_ACLS, keys.SYNC_FULL_ACL))
    if asked is None or full is not None or not properties.get(keys.SYNC_TOPIC_ACLS, flow):
        return
    findings.warn(
        asked,
        f"of the ACLs of {flow.name}, WRITE, prefixes, groups and transactional ids are left out, and SCRAM users as "
        f"well: write {keys.SYNC_FULL_ACL.name}=true to keep them too, or false if that is meant",
        keys.SYNC_FULL_ACL.name,
    )


def _listed(properties: Properties, key: Key[tuple[str, ...]], flow: Flow) -> str:
    words: tuple[str, ...] = properties.get(key, flow)
    return ",".join(words)


def credential_provider(properties: Properties, flow: Flow, findings: Findings) -> CredentialProvider | None:
    """Who knows the passwords of SCRAM users; None where users are not synced, or nothing is set up for it."""
    default = properties.get(keys.CREDENTIAL_PROVIDER) == keys.CREDENTIAL_PROVIDER.default
    if not properties.get(keys.SYNC_FULL_ACL, flow) or (default and not properties.get(keys.ENCODER_SECRET)):
        return None
    try:
        return load_provider(properties.of_flow(flow))
    except LockstepError as error:
        entry = properties.entry(keys.CREDENTIAL_PROVIDER.name, flow) or properties.entry(keys.ENCODER_SECRET.name)
        findings.mistake(entry, str(error), entry.key if entry else keys.CREDENTIAL_PROVIDER.name)
        return None
