"""What users of Lockstep import, or name in a properties file. Everything else may change with any version.

`lockstep.translate_offsets`, and the modules `policies`, `filters`, `listeners`, `reporters`, `credentials`,
`reconfigurable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.application_offsets import translate_offsets

__all__ = ["translate_offsets"]


def __getattr__(name: str) -> Any:
    # It brings Kafka's clients with it, which a policy or a filter does not need.
    if name == "translate_offsets":
        from app.application_offsets import translate_offsets

        return translate_offsets
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
