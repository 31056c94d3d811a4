"""What the local clusters, MM2 and the job have in common: a `with` block starts them and stops them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

T = TypeVar("T", bound="Startable")


class Startable(ABC):
    """`start` at the begin of a `with` block, `stop` at its end."""

    @abstractmethod
    def start(self) -> None:
        """Starts it."""

    @abstractmethod
    def stop(self) -> object:
        """Stops it; nothing where it does not run."""

    def __enter__(self: T) -> T:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
