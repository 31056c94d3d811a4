"""Avro's single-object encoding: two marker bytes, the schema's CRC-64-AVRO fingerprint, the value.

Source: Avro specification 1.11, "Single-object encoding". Schemas are in `sinks/ledger/schemas/`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import orjson
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from streaming.errors import LockstepError

SCHEMAS = Path(__file__).resolve().parent / "schemas"
MARKER = b"\xc3\x01"
HEADER = len(MARKER) + 8


class SingleObject:
    """Encodes and decodes values of one schema, named by its file in `sinks/ledger/schemas/`."""

    def __init__(self, name: str) -> None:
        self._name = name
        raw = orjson.loads((SCHEMAS / f"{name}.avsc").read_bytes())
        self._schema = parse_schema(raw)
        # fastavro gives the fingerprint as hex in the order in which the specification writes it: little-endian.
        self._header = MARKER + bytes.fromhex(fingerprint(to_parsing_canonical_form(raw), "CRC-64-AVRO"))

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Returns the encoded value. Raises ValueError or TypeError for a value that does not fit the schema."""
        out = io.BytesIO()
        out.write(self._header)
        fastavro.schemaless_writer(out, self._schema, dict(value), strict=True)
        return out.getvalue()

    def recognizes(self, data: bytes) -> bool:
        """Whether the header of these bytes names this schema."""
        return data[:HEADER] == self._header

    def decode(self, data: bytes) -> dict[str, Any]:
        """Returns the decoded value. Raises LockstepError for bytes of another schema, and for other bytes."""
        if not self.recognizes(data):
            raise LockstepError(
                f"not a {self._name} of this version: its header is {data[:HEADER].hex()}, not {self._header.hex()}"
            )
        body = io.BytesIO(data[HEADER:])
        try:
            value = fastavro.schemaless_reader(body, self._schema, None)
        except (EOFError, ValueError, IndexError, TypeError, OverflowError) as error:
            raise LockstepError(f"{self._name}: truncated or damaged: {error}") from error
        if rest := body.read():
            raise LockstepError(f"{self._name}: damaged: {len(rest)} bytes follow the value")
        if not isinstance(value, dict):
            raise LockstepError(f"{self._name}: damaged: the Avro value has no fields")
        return value
