"""`validate` says everything that is wrong with the clients of a file in one go, and connects to nothing for it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import typer

from app.cli.output import FAILED, Output
from app.cli.validate_command import validate

BASE = """clusters=a,b,c
a.bootstrap.servers=127.0.0.1:1
b.bootstrap.servers=127.0.0.1:2
c.bootstrap.servers=127.0.0.1:3
security.protocol=SSL
ssl.truststore.type=NONE
ssl.truststore.location=/nowhere
a->b.enabled=true
a->c.enabled=true
"""


def test_wrong_client_settings_of_all_clusters_are_told_at_once_and_each_once(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "mirror.properties"
    path.write_text(BASE)
    with pytest.raises(typer.Exit) as ended:
        validate(path, None, Output.JSON)
    assert ended.value.exit_code == FAILED
    messages = [row["message"] for row in orjson.loads(capfdbinary.readouterr().out)["errors"]]
    assert [message[: len("cluster a")] for message in messages] == ["cluster a", "cluster b", "cluster c"]
