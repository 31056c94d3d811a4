"""Plans what `lockstep adopt` takes over: items on the target that equal the source's but that other clients made.
Pure.

| on the target                                          | becomes                                      |
|--------------------------------------------------------|----------------------------------------------|
| as the source has it, made by MM2 or by hand           | Lockstep's own: revoked with the source's    |
| as the source has it, and Lockstep's already           | as it is, counted                            |
| another value than the source's, or not on the source  | as it is                                     |
| as the source has it, but protected                    | refused, with its reason                     |

Adoption changes only the ledger. Lockstep deletes an item that it owns once the source no longer has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sinks.model.changes import Key, Kind, compact_json, subject_as_json
from streaming.flow import Flow

ADOPT = "adopt"
"""The operation in documents and in the audit topic. No plan has it, because the target stays as it is."""


@dataclass(frozen=True)
class Alike:
    """Items of one kind that both sides have alike."""

    items: Mapping[Key, str] = field(default_factory=dict)
    """The topic's id by key; "" if the item has none."""
    refused: Mapping[Key, str] = field(default_factory=dict)
    """Why an item must not be adopted, by key."""


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
        """Returns one flow of the document."""
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
        """Returns a row for each adopted item, in the form of the outcomes of `lockstep apply`."""
        return [self._row(key) | {"result": "applied", "error": None} for key in sorted(self.items)]


def plan_adoption(flow: Flow, kind: Kind, alike: Alike, owned: Mapping[Key, str]) -> AdoptionPlan:
    """Returns the plan. `owned`: items of the kind that Lockstep owns already, with topic ids. A recreated topic is no
    longer owned."""
    new = {key: found for key, found in alike.items.items() if owned.get(key) != found}
    refused = {key: reason for key, reason in alike.refused.items() if key not in owned}
    return AdoptionPlan(flow, kind, new, refused, len(alike.items) - len(new))
