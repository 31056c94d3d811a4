"""The former place of `lockstep.translate_offsets`. It goes with the next version."""

from __future__ import annotations

import warnings

from app.application_offsets import translate_offsets

__all__ = ["translate_offsets"]

warnings.warn("app.failover has moved: write `from lockstep import translate_offsets`", FutureWarning, stacklevel=2)
