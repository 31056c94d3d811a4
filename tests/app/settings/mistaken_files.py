"""Properties files that are wrong, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import ConfigurationError, load

TWO = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
THREE = TWO.replace("clusters=a,b", "clusters=a,b,c") + "c.bootstrap.servers=h:3\nc->b.enabled=true\n"
IDENTITY = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
QUIET = "sync.full.acl.enabled=false\n" + "".join(
    f"sync.topic.{what}.enabled=false\nlockstep.sync.topic.{what}.enabled=true\n" for what in ("configs", "acls")
)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "m.properties"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(path, environ={})
    for mistake in caught.value.mistakes:
        assert str(mistake) in str(caught.value)
    return [str(mistake).removeprefix(str(path)) for mistake in caught.value.mistakes]


def warnings(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "m.properties"
    path.write_text(text)
    return [str(warning).removeprefix(str(path)) for warning in load(path, environ={}).warnings]
