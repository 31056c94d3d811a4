"""Builds the controllers and writers of a flow from the registry. The folder of each kind builds its own.

`sinks.kinds.<package>.controller` has `assemble(assembly: Assembly) -> Assembled`, which opens no connection.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sinks.background import Beside, at_once
from sinks.every_kind.controller import Controller, Write
from sinks.every_kind.wishes import Wishes
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.model.changes import Kind

CompareProgress = Callable[[int, int], None]
"""Called with (topics compared, topics to compare)."""


@dataclass(frozen=True)
class GroupScope:
    """The groups that a command asks for; None: all. `back`: offsets go from the target to the source. `shown`: list
    groups even if no offset is to be written."""

    groups: Collection[str] | None = None
    back: bool = False
    shown: bool = False


EVERY_GROUP = GroupScope()


@dataclass
class SyncedPrincipals:
    """Principals whose ACLs were synced last: name on the target by name on the source. None while unknown.

    The controller of ACLs sets it. Controllers of other kinds read it in the same pass.
    """

    current: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Assembly:
    """The ports, settings and helpers from which a kind's folder builds its controller and writers."""

    settings: FlowSettings
    source: ClusterPorts
    target: ClusterPorts
    once: bool = False
    """A command runs a single pass, which compares everything for as long as it takes."""
    comes_again: bool = False
    """Other passes follow, so long work may be spread over them."""
    beside: Beside = at_once
    """Runs work that passes need not wait for."""
    progress: CompareProgress | None = None
    scope: GroupScope = EVERY_GROUP
    principals: SyncedPrincipals = field(default_factory=SyncedPrincipals)
    wishes: Wishes = field(default_factory=Wishes)
    """Wishes of all flows of the process into this target."""


@dataclass(frozen=True)
class Assembled:
    """Controllers and writers of a folder. Both are empty if its kinds are not enabled."""

    controllers: Sequence[Controller] = ()
    writers: Mapping[Kind, Write] = field(default_factory=dict)


def assemble(assembly: Assembly, kinds: Collection[Kind] = tuple(Kind)) -> Assembled:
    """Build the controllers and writers of these kinds, in the registry's order. From now on other flows wait for this
    flow's wishes."""
    controllers: list[Controller] = []
    writers: dict[Kind, Write] = {}
    for package in dict.fromkeys(kind.row.package for kind in Kind if kind in kinds):
        made: Assembled = importlib.import_module(f"sinks.kinds.{package}.controller").assemble(assembly)
        controllers += made.controllers
        writers |= made.writers
    assembly.wishes.join(assembly.settings.flow)
    kept = frozenset[Kind]().union(*(one.kinds for one in controllers))
    for kind in (one for one in kinds if one.row.of_principals):
        (assembly.wishes.expect if kind in kept else assembly.wishes.withdraw)(assembly.settings.flow, kind)
    return Assembled(controllers, writers)
