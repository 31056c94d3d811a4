"""Measurements beside MM2, and of commands."""

from __future__ import annotations

import os

# An installed Lockstep has its bytecode. Without it, every command and job that a bench starts would compile anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
