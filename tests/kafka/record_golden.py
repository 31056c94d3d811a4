"""Writes `tests/golden/` from a real MM2: `python -m tests.kafka.record_golden`, when the version of Kafka changes."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path

from app.local.jars import KAFKA
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import LocalMirror
from streaming.mm2.records import RecordKind
from tests.kafka import mm2_records
from tests.kafka.mm2_records import INTERNAL
from tests.quick_java import QUICK_KAFKA

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
MOST = 6
"""Records of a kind that are kept."""


def main() -> None:
    """Starts two clusters and MM2 in a temporary folder, and writes one file for each kind of record."""
    with tempfile.TemporaryDirectory(prefix="lockstep-golden-") as name:
        folder = Path(name)
        with (
            LocalCluster("a", folder / "a", java_options=QUICK_KAFKA) as a,
            LocalCluster("b", folder / "b", java_options=QUICK_KAFKA) as b,
        ):
            mm2_records.make_topic(a)
            with LocalMirror(mm2_records.properties(a, b), folder / "mirror", java_options=QUICK_KAFKA):
                mm2_records.bring_about(a, b)
            for kind, internal in INTERNAL.items():
                record(kind, a if internal.on_source else b, folder)


def record(kind: RecordKind, cluster: LocalCluster, folder: Path) -> None:
    """One file: bytes as they were, what Kafka's own class says of them, and the fields that our codec reads."""
    internal = INTERNAL[kind]
    raw = mm2_records.read(cluster, internal.topic)[:MOST]
    lines = mm2_records.read_by_kafka(cluster, internal, len(raw), folder)
    rows = []
    for (key, value), line in zip(raw, lines, strict=True):
        fields = internal.decode(key, value)
        if internal.line(fields) != line:
            raise SystemExit(f"{kind}: Kafka reads {line}, ours {fields}")
        rows.append({"key": key.hex(), "value": value.hex(), "fields": dataclasses.asdict(fields), "kafka": line})
    document = {"written_by": f"MirrorMaker 2 of Kafka {KAFKA}", "topic": internal.topic, "records": rows}
    GOLDEN.mkdir(exist_ok=True)
    path = GOLDEN / f"{kind}.json"
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
