"""Interface of plug-ins that accept new property values while the job runs (KIP-226); see docs/plugins.md."""

from __future__ import annotations

from streaming.reconfiguration import Reconfigurable

__all__ = ["Reconfigurable"]
