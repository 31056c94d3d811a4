"""Makes the controllers and writers of a flow from the registry: each kind's folder makes its own.

`sinks.kinds.<package>.controller` has `assemble(assembly: Assembly) -> Assembled`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from sinks.background import Beside, at_once
from sinks.every_kind.claims import Claims
from sinks.every_kind.controller import Controller, Writer
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.model.changes import Kind

CompareProgress = Callable[[int, int], None]
"""Called with (topics compared, topics to compare)."""


@dataclass(frozen=True)
class GroupScope:
    """Which groups a command asks for: None all. `back`: from the target to the source. `shown`: they are listed
    even where no offset is to be written."""

    groups: Collection[str] | None = None
    back: bool = False
    shown: bool = False


EVERY_GROUP = GroupScope()


@dataclass
class SyncedPrincipals:
    """Those whose ACLs were synced last, the name on the source to that on the target; None while they are not known.

    The ACLs' controller writes it, and controllers of other kinds read it in the same pass.
    """

    current: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Assembly:
    """What a kind's folder makes its controller and writers from.

    `once`: a command's single pass, which compares everything however long it takes; else a job's. `comes_again`: other
    passes follow by themselves, so that what would hold up the other kinds may take several of them. `beside`: runs
    what passes need not wait for.
    `claims`: one for all flows of the process into this target.
    """

    settings: FlowSettings
    source: ClusterPorts
    target: ClusterPorts
    once: bool = False
    comes_again: bool = False
    beside: Beside = at_once
    progress: CompareProgress | None = None
    scope: GroupScope = EVERY_GROUP
    principals: SyncedPrincipals = field(default_factory=SyncedPrincipals)
    claims: Claims = field(default_factory=Claims)


@dataclass(frozen=True)
class Assembled:
    """What a folder made. Either may be empty, where its kinds are not enabled."""

    controllers: Sequence[Controller] = ()
    writers: Mapping[Kind, Writer] = field(default_factory=dict)


class KindModule(Protocol):
    """What `sinks.kinds.<package>.controller` must have."""

    def assemble(self, assembly: Assembly) -> Assembled:
        """Makes what the kinds of this folder need; opens no connection."""


def assemble(assembly: Assembly, kinds: Collection[Kind] = tuple(Kind)) -> Assembled:
    """The controllers and writers of these kinds, in the registry's order. From now on other flows wait for what this
    one wants of them, if it keeps them."""
    controllers: list[Controller] = []
    writers: dict[Kind, Writer] = {}
    for package in dict.fromkeys(kind.row.package for kind in Kind if kind in kinds):
        made = cast(KindModule, importlib.import_module(f"sinks.kinds.{package}.controller")).assemble(assembly)
        controllers += made.controllers
        writers |= made.writers
    kept = frozenset[Kind]().union(*(one.kinds for one in controllers))
    for kind in (one for one in kinds if one.row.of_principals):
        (assembly.claims.expect if kind in kept else assembly.claims.withdraw)(assembly.settings.flow, kind)
    return Assembled(controllers, writers)
