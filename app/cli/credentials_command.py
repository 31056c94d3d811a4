"""`lockstep credentials`: the stored passwords of SCRAM users. Passwords are never arguments and never printed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from app.cli.output import DONE, FAILED, Output, closed_at_end, complain, print_json, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded, need_terminal, whole
from app.credentials.credential_providers import load_provider, password_in, read_password
from app.credentials.rotation import UserCluster, Written, rotate
from app.credentials.store import CredentialStore, open_store, provider_class
from app.properties.keys import CREDENTIAL_PROVIDER
from app.settings import Settings
from app.settings.load import read_properties
from app.wiring import admin_of, audit, connect
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_login import can_log_in
from sinks.kafka.jvm.jvm_users import JvmUsers
from sinks.kafka.ports.users import Mechanism
from sinks.ledger.audit import CredentialWrite
from sinks.model.principals import USER_TYPE
from sinks.plugins.credential_provider import CredentialProvider
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow
from streaming.message_words import number_of

log = logging.getLogger(__name__)

STDIN = Path("-")

app = typer.Typer(
    help="The encrypted store of passwords that SCRAM users are made from.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
"""Iterations that Kafka allows. Source: `ScramMechanism.minIterations`, `maxIterations`."""


UserArgument = Annotated[str, typer.Argument(help="The user's name on the source, without `User:`.")]
PasswordOption = Annotated[
    Path | None,
    typer.Option("--password-file", help="File that holds the password; - for standard input. Default: asks for it."),
]
UsersArgument = Annotated[
    list[str] | None, typer.Argument(help="Users, by their names on the source. Default: all that are stored.")
]
SourceFlag = Annotated[bool, typer.Option("--source", help="Also write it to the source.")]
TargetFlag = Annotated[bool, typer.Option("--target", help="Also write it to the target.")]
BothFlag = Annotated[bool, typer.Option("--both", help="Also write it to source and target.")]
MechanismOption = Annotated[
    list[Mechanism] | None,
    typer.Option(
        "--mechanism", help="Mechanism of a user that no cluster has yet; may be repeated. Default: SCRAM-SHA-512."
    ),
]
IterationsOption = Annotated[
    int,
    typer.Option(
        "--iterations",
        help="Iterations of a user that no cluster has yet: 4096 to 16384.",
        parser=whole(LEAST_ITERATIONS, MOST_ITERATIONS),
    ),
]


@app.command("set")
def set_password(
    user: UserArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    password_file: PasswordOption = None,
    source: SourceFlag = False,
    target: TargetFlag = False,
    both: BothFlag = False,
    mechanism: MechanismOption = None,
    iterations: IterationsOption = 4096,
) -> None:
    """Stores a user's password, encrypted; with --both makes or changes the user on the clusters in one go.

    Writes to the source only with --source or --both. `lockstep audit` shows what was written.
    """
    settings, store = _opened(config, flow)
    password = _new_password(user, password_file)
    if not (source or target or both):
        store.put({user: password})
        print_line(f"{user}: stored")
        return
    everywhere = both or (source and target)
    clusters = [
        replace(one, to_write=everywhere or one.is_source is source) for one in _clusters_of_user(settings, user)
    ]
    if not any(one.to_write for one in clusters):
        why = "--target alone names no cluster: each target of these flows is also a source"
        raise WrongUsage(f"{why}. Choose one flow with --flow")
    otherwise = dict.fromkeys((one.value for one in mechanism or [Mechanism.SHA_512]), iterations)
    tell = partial(_audit_password, settings)
    _say_written(user, rotate(store, user, password, clusters, otherwise=otherwise, anew=everywhere, tell=tell))


@app.command("rotate")
def rotate_password(
    user: UserArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    password_file: PasswordOption = None,
) -> None:
    """Gives a user a new password on targets and sources, then in the store. After an interruption, run it again.

    Writes to the source, since clients log in there. `lockstep audit` shows what was written.
    """
    settings, store = _opened(config, flow)
    under_way = store.pending(user) is not None
    if under_way:
        complain(f"{user}: continues with the pending password")
    password = None if under_way and password_file is None else _new_password(user, password_file)
    tell = partial(_audit_password, settings)
    _say_written(user, rotate(store, user, password, _clusters_of_user(settings, user), tell=tell))


def _say_written(user: str, passwords: Iterable[Written]) -> None:
    for written in passwords:
        print_line(f"{written.cluster}: {written.user} {written.mechanism} written")
    print_line(f"{user}: stored")


@app.command("list")
def list_users(
    config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT
) -> None:
    """Lists the users with a stored password, and its version."""
    _, store = _opened(config, flow)
    rows = [asdict(one) for one in store.users()]
    if output is Output.JSON:
        print_json({"users": rows})
    else:
        title, columns = f"{store.path}: {number_of(len(rows), 'user')}", ("user", "version", "under way")
        print_table(title, columns, [tuple(row.values()) for row in rows])


@app.command("verify")
def verify(
    users: UsersArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Logs in as each user on both clusters, and shows where that fails. Writes nothing."""
    settings = loaded(config, flow)
    properties = _flow_properties(config, settings.flows[0].flow)
    is_store = provider_class(properties) == CREDENTIAL_PROVIDER.default
    provider = open_store(properties) if is_store else load_provider(properties)
    closed_at_end(provider.close)
    names = users or _stored(provider)
    logins = [login for name in names for login in _try_logins(settings, provider, name)]
    if output is Output.JSON:
        print_json({"logins": [{**asdict(one), "works": one.works} for one in logins]})
    else:
        rows = [(one.user, one.cluster, one.mechanism, "works" if one.works else "fails", one.reason) for one in logins]
        print_table("", ("user", "cluster", "mechanism", "login", "reason"), rows)
    raise typer.Exit(DONE if all(one.works for one in logins) else FAILED)


@app.command("remove")
def remove(
    users: Annotated[list[str], typer.Argument(help="Users as the source names them.")],
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    force: Annotated[bool, typer.Option("--force", help="Also delete a pending password.")] = False,
) -> None:
    """Deletes passwords from the store. The clusters keep their users."""
    _, store = _opened(config, flow)
    unknown = [user for user in users if not store.remove(user, force=force)]
    for user in users:
        print_line(f"{user}: {'was not stored' if user in unknown else 'removed'}")
    raise typer.Exit(FAILED if unknown else DONE)


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="A properties file with lines USER=PASSWORD; - for standard input.")],
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
) -> None:
    """Stores the passwords of many users at once, all or none. Delete the file afterwards."""
    _, store = _opened(config, flow)
    named = "standard input" if file == STDIN else str(file)
    text = password_in(sys.stdin.buffer.read(), named) if file == STDIN else read_password(file)
    try:
        passwords: dict[str, str] = javaproperties.loads(text)
    except ValueError:
        raise WrongUsage(f"{named} cannot be read as properties: write USER=PASSWORD, a line each") from None
    store.put(passwords)
    print_line(f"{number_of(len(passwords), 'user')} stored")


def _opened(config: Path, flow: Sequence[str] | None) -> tuple[Settings, CredentialStore]:
    """Returns the settings and the password store. Raises WrongUsage if the file names another provider."""
    settings = loaded(config, list(flow) if flow else None)
    properties = _flow_properties(config, settings.flows[0].flow)
    if (named := provider_class(properties)) != CREDENTIAL_PROVIDER.default:
        raise WrongUsage(f"{CREDENTIAL_PROVIDER.name}={named}: that provider keeps the passwords. Change them there")
    return settings, open_store(properties)


def _stored(provider: CredentialProvider) -> list[str]:
    if not isinstance(provider, CredentialStore):
        raise WrongUsage(f"{type(provider).__name__} lists no users: name those to verify")
    return [one.user for one in provider.users()]


def _new_password(user: str, file: Path | None) -> str:
    if file == STDIN:
        return password_in(sys.stdin.buffer.read(), "standard input")
    if file is not None:
        return read_password(file)
    need_terminal(f"{user} gets a new password", "give --password-file FILE, or - for standard input")
    return str(typer.prompt(f"New password of {user}", hide_input=True, confirmation_prompt=True, err=True))


def _flow_properties(config: Path, flow: Flow) -> dict[str, str]:
    """Returns the properties for a plug-in of this flow. Raises ConfigurationError for a bad file."""
    properties = read_properties(config, os.environ)
    properties.findings.raise_if_any()
    return properties.of_flow(flow)


def _clusters_of_user(settings: Settings, user: str) -> list[UserCluster]:
    """Returns the clusters of all flows, each once, with the user's name there. `user`: the name on the source.
    Connects to none.

    Raises LockstepError if a principal mapping gives the user no name on a target.
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


def _audit_password(settings: Settings, written: Written, error: str | None) -> None:
    """Records a written password in the audit topic of every flow of its cluster. Only logs a failure, because the
    password is already written."""
    event = CredentialWrite(written.cluster, written.user, written.mechanism, written.iterations, error)
    for flow in settings.flows:
        if written.cluster not in (flow.flow.source, flow.flow.target):
            continue
        try:
            with closing(connect(settings, flow.flow.target, flow.flow)) as target:
                audit(flow, target).record_credentials(flow.flow, [event])
        except LockstepError as problem:
            log.warning("%s: written, but not audited: %s", flow.flow.name, problem)


def _target_name(flow: FlowSettings, user: str) -> str:
    mapped = flow.acls.mapping.map(f"{USER_TYPE}{user}")
    if mapped is None:
        raise WrongUsage(f"{flow.flow.name}: lockstep.acl.principal.mapping gives {user} no name on the target")
    return mapped.removeprefix(USER_TYPE)


@dataclass(frozen=True, slots=True)
class Login:
    """A login of a user at a cluster with a mechanism. `reason`: why it failed; None: it succeeded."""

    user: str
    cluster: str
    mechanism: str | None
    reason: str | None

    @property
    def works(self) -> bool:
        return self.reason is None


def _try_logins(settings: Settings, provider: CredentialProvider, user: str) -> Iterator[Login]:
    """Logs in as the user on every cluster of the flows, with every mechanism that the user has there.

    A cluster that does not answer counts as a failed login. Raises LockstepError as `_clusters_of_user`.
    """
    credential = provider.credential(user)
    if credential is None:
        yield Login(user, "", None, "no credential")
        return
    for cluster in _clusters_of_user(settings, user):
        try:
            mechanisms = cluster.users.describe([cluster.user]).get(cluster.user, {})
            if not mechanisms:
                yield Login(user, cluster.alias, None, f"{cluster.user} is not a SCRAM user there")
                continue
            with closing(admin_of(cluster.alias, settings.clusters[cluster.alias].admin)) as admin:
                for mechanism in sorted(mechanisms):
                    reason = can_log_in(admin, cluster.user, credential.password, mechanism)
                    yield Login(user, cluster.alias, mechanism, reason)
        except LockstepError as error:
            yield Login(user, cluster.alias, None, str(error))
