"""Plans what `lockstep adopt` takes over: items on the target that equal the source's but were made by others. Pure.

| on the target                                          | becomes                                      |
|--------------------------------------------------------|----------------------------------------------|
| as the source has it, made by MM2 or by hand           | Lockstep's own: revoked with the source's    |
| as the source has it, and Lockstep's already           | as it is, counted                            |
| another value than the source's, or not on the source  | as it is                                     |
| as the source has it, but protected                    | refused, with its reason                     |

Nothing changes on the target but the ledger: what is owned is deleted once the source has it no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sinks.model.changes import Key, Kind, compact_json, subject_as_json
from streaming.flow import Flow

ADOPT = "adopt"
"""The operation, in documents and in the audit topic. It is none of a plan's, for the target stays as it is."""


@dataclass(frozen=True)
class Alike:
    """What both sides have alike, of one kind. `items`: by key, the topic's id, or "" if it has none. `refused`: by
    key, why it must not be adopted."""

    items: Mapping[Key, str] = field(default_factory=dict)
    refused: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AdoptionPlan:
    """What `lockstep adopt` would adopt of one kind of a flow. `owned`: the number of items that Lockstep owns
    already."""

    flow: Flow
    kind: Kind
    items: Mapping[Key, str]
    refused: Mapping[Key, str]
    owned: int

    @property
    def digest(self) -> str:
        """Returns `sha256:…` over the flow, the kind and the keys, for the operator who agreed to them."""
        rows = [compact_json([self.kind.value, *key, self.items[key]]) for key in sorted(self.items)]
        return "sha256:" + hashlib.sha256(b"\n".join([self.flow.name.encode(), *rows])).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """One flow of the document."""
        return {
            "source": self.flow.source,
            "target": self.flow.target,
            "kind": self.kind.value,
            "digest": self.digest,
            "changes": [self._row(key) for key in sorted(self.items)],
            "refused": [self._row(key) | {"reason": reason} for key, reason in sorted(self.refused.items())],
            "owned": self.owned,
        }

    def _row(self, key: Key) -> dict[str, Any]:
        return subject_as_json(self.kind, ADOPT, key)

    def outcomes(self) -> list[dict[str, Any]]:
        """Rows of adopted items, in the form of `apply`'s."""
        return [self._row(key) | {"result": "applied", "error": None} for key in sorted(self.items)]


def plan_adoption(flow: Flow, kind: Kind, alike: Alike, owned: Mapping[Key, str]) -> AdoptionPlan:
    """Returns the plan. `owned`: Lockstep's items of the kind, with topic ids. A recreated topic is no longer owned."""
    new = {key: found for key, found in alike.items.items() if owned.get(key) != found}
    refused = {key: reason for key, reason in alike.refused.items() if key not in owned}
    return AdoptionPlan(flow, kind, new, refused, len(alike.items) - len(new))
