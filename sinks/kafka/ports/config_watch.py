"""Which topics' configs differ since the last poll."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Watch(Protocol):
    """Finds differences since its own last poll, as cheaply as it can. Not thread-safe."""

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """Topics whose configs differ from their last poll; at the first one, all of them.

        A topic that could not be seen by itself counts as changed: reading it in full tells why.
        """

    def forget(self, topics: Iterable[str]) -> None:
        """The next poll of these reports them as changed."""

    def close(self) -> None: ...
