"""Lockstep's own dynamic configuration (KIP-226): what may be overridden, passwords among it, and where it is kept."""
