"""A replication flow: its pair of clusters and its name. Plain values, no IO."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.errors import LockstepError


@dataclass(frozen=True, order=True, slots=True)
class Flow:
    """A pair of cluster aliases, MM2's `SourceAndTarget`: records go from `source` to `target`."""

    source: str
    target: str

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise ValueError("a flow needs the alias of its source and of its target")
        if self.source == self.target:
            raise ValueError(
                f"the flow {self.source}->{self.target} leads back to itself: source and target must differ"
            )

    @property
    def name(self) -> str:
        """`a->b`, as the properties file writes it."""
        return f"{self.source}->{self.target}"

    def as_json(self) -> dict[str, str]:
        """The JSON fields that name the flow in every document."""
        return {"source": self.source, "target": self.target}

    @property
    def reverse(self) -> Flow:
        """The flow the other way round."""
        return Flow(self.target, self.source)

    @classmethod
    def parse(cls, text: str) -> Flow:
        """Parse `a->b`. Raises LockstepError if the arrow or an alias is missing."""
        source, arrow, target = text.partition("->")
        if not arrow or not source.strip() or not target.strip():
            # A shell takes an unquoted arrow for a file to write to.
            quoted = "; in a shell in quotes: 'a->b'" if text.endswith("-") else ""
            raise LockstepError(f"{text!r} is no flow: write it as SOURCE->TARGET, e.g. a->b{quoted}")
        return cls(source.strip(), target.strip())
