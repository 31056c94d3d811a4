"""Lockstep's public Python API: what user code imports or a properties file names.

It is `lockstep.translate_offsets` and the modules `policies`, `filters`, `listeners`, `reporters`, `credentials`,
`reconfigurable`. Everything else may change with any version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.application_offsets import translate_offsets

__all__ = ["translate_offsets"]


def __getattr__(name: str) -> Any:
    # Imported on demand: it loads Kafka's clients, which a policy or a filter does not need.
    if name == "translate_offsets":
        from app.application_offsets import translate_offsets

        return translate_offsets
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
