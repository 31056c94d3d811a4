"""For plug-ins that take other values while the job runs (KIP-226); docs/plugins.md."""

from __future__ import annotations

from streaming.reconfiguration import Reconfigurable

__all__ = ["Reconfigurable"]
