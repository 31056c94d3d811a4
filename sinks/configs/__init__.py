"""Dynamic configuration (KIP-226) as rules: what may be altered where, what is in force, and how to try a value out.

Nothing here opens a connection: clusters are talked to through `sinks.cluster.levels`.
"""
