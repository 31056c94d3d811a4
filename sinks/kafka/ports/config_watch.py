"""Which topics' configs differ since the last look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Watch(Protocol):
    """Looks for differences since its own last look, as cheaply as it can. Not thread-safe."""

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """Topics whose configs differ from the last look at them; at the first look, all of them.

        A topic that could not be seen by itself counts as changed: reading it in full tells why.
        """

    def forget(self, topics: Iterable[str]) -> None:
        """The next look at these reports them as changed."""

    def close(self) -> None: ...
