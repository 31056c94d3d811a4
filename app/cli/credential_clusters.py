"""What the commands on credentials work with: the properties of a file, and the clusters on which a user is known."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.credentials.rotation import UserCluster, Written
from app.properties.config_providers import resolve_all
from app.properties.mistakes import Findings
from app.properties.parse import read
from app.properties.scoped_keys import Properties
from app.settings import Settings
from app.settings.cluster_sections import aliases
from app.wiring import admin_of, audit, connect
from sinks.engine.audit_events import CredentialWrite
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_login import can_log_in
from sinks.kafka.jvm.jvm_users import JvmUsers
from sinks.kinds.users.credentials import Credential
from sinks.kinds.users.rules import PRINCIPAL
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow

log = logging.getLogger(__name__)


def flow_properties(config: Path, flow: Flow, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a plug-in of this flow is configured with. Raises ConfigurationError for a file that cannot be read."""
    findings = Findings(str(config))
    entries = resolve_all(read(config, findings), environ, findings)
    properties = Properties(entries, aliases(entries, findings), findings)
    findings.raise_if_any()
    return properties.of_flow(flow)


def clusters_of_user(settings: Settings, user: str) -> list[UserCluster]:
    """The clusters of the flows, each once, with the name that a user of the source has there. Connects to none.

    Raises LockstepError where a mapping of principals leaves the user without a name on a target.
    """
    clusters: dict[tuple[str, str], UserCluster] = {}
    for flow in settings.flows:
        source, target = flow.flow.source, flow.flow.target
        for alias, name, is_source in ((source, user, True), (target, _target_name(flow, user), False)):
            known = clusters.get((alias, name))
            if known is None:
                users = JvmUsers(admin_of(alias, settings.cluster(alias, flow.flow).admin))
                clusters[alias, name] = UserCluster(alias, users, name, is_source)
            else:
                clusters[alias, name] = replace(known, is_source=known.is_source or is_source)
    return list(clusters.values())


class CredentialAudit:
    """Tells the audit topic of every flow that a cluster belongs to which passwords were written there."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def tell(self, written: Written, error: str | None) -> None:
        """That it could not be audited is logged: the password is written by then."""
        event = CredentialWrite(written.cluster, written.user, written.mechanism, written.iterations, error)
        for flow in self._settings.flows:
            if written.cluster not in (flow.flow.source, flow.flow.target):
                continue
            try:
                with closing(connect(self._settings, flow.flow.target, flow.flow)) as target:
                    audit(flow, target).record_credentials(flow.flow, [event])
            except LockstepError as problem:
                log.warning("%s: written, but not audited: %s", flow.flow.name, problem)


def _target_name(flow: FlowSettings, user: str) -> str:
    mapped = flow.acls.mapping.map(f"{PRINCIPAL}{user}")
    if mapped is None:
        raise WrongUsage(f"{flow.flow.name}: lockstep.acl.principal.mapping gives {user} no name on the target")
    return mapped.removeprefix(PRINCIPAL)


@dataclass(frozen=True, slots=True)
class Login:
    """Whether a user gets in at a cluster with a mechanism; `reason`: why not."""

    user: str
    cluster: str
    mechanism: str | None
    reason: str | None = field(default=None)

    @property
    def works(self) -> bool:
        """Whether the user got in."""
        return self.reason is None


def try_logins(settings: Settings, credential: Credential) -> list[Login]:
    """Logs in as the user on every cluster of the flows, with every mechanism that the user has there.

    A cluster that cannot be asked is a login that does not work. Raises LockstepError as `clusters_of_user`.
    """
    found: list[Login] = []
    for cluster in clusters_of_user(settings, credential.user):
        try:
            found += _at(cluster, settings.clusters[cluster.alias].admin, credential)
        except LockstepError as error:
            found.append(Login(credential.user, cluster.alias, None, str(error)))
    return found


def _at(cluster: UserCluster, properties: Mapping[str, str], credential: Credential) -> list[Login]:
    mechanisms = cluster.users.describe([cluster.user]).get(cluster.user, {})
    if not mechanisms:
        return [Login(credential.user, cluster.alias, None, f"{cluster.user} is no SCRAM user there")]
    with closing(admin_of(cluster.alias, properties)) as admin:
        return [
            Login(
                credential.user,
                cluster.alias,
                mechanism,
                can_log_in(admin, cluster.user, credential.password, mechanism),
            )
            for mechanism in sorted(mechanisms)
        ]
