"""What a SparkSession of the job's own is started with."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from app.local.jars import PROJECT
from app.spark.submit_options import defaults, is_local


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "kafka.ssl.keystore.certificate.chain",
        "kafka.ssl.truststore.password",
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
        "spark.kafka.clusters.a.sasl.token.mechanism",
        "schema.registry.basic.auth.user.info",
        "fs.s3a.access.key",
        "acme.api.key",
        "acme.pwd",
    ],
)
def test_sparks_ui_hides_what_has_such_a_name(name: str) -> None:
    assert re.search(defaults()["spark.redaction.regex"], name)


@pytest.mark.parametrize("name", ["kafka.bootstrap.servers", "spark.driver.memory", "spark.sql.ui.explainMode"])
def test_it_shows_what_says_nothing(name: str) -> None:
    assert not re.search(defaults()["spark.redaction.regex"], name)


@pytest.mark.parametrize(
    ("options", "environ", "local"),
    [
        ([], {}, True),
        ([], {"MASTER": "local[2]"}, True),
        ([], {"MASTER": "yarn"}, False),
        (["--master", "spark://h:7077", "pyspark-shell"], {}, False),
        (["--master=local[3]"], {"MASTER": "yarn"}, True),
        (["--conf", "spark.master=k8s://h"], {}, False),
        (["--master", "local-cluster[1,1,1024]"], {}, False),
    ],
)
def test_only_a_local_master_keeps_to_loopback(
    options: list[str], environ: dict[str, str], local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTER", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert is_local(options) is local


@pytest.mark.parametrize(
    ("options", "environ", "address"),
    [
        ([], {}, "127.0.0.1"),
        (["--driver-memory", "2g"], {}, "127.0.0.1"),
        (["--master", "local[2]"], {}, "127.0.0.1"),
        (["--master=local"], {}, "127.0.0.1"),
        (["--conf", "spark.master=local[1]"], {}, "127.0.0.1"),
        (["--master", "local[2]"], {"SPARK_LOCAL_IP": "10.1.2.3"}, "10.1.2.3"),
        (["--master", "spark://h:7077"], {}, ""),
        (["--conf", "spark.master=yarn"], {}, ""),
        (["--properties-file", "mine.conf"], {}, ""),
        ([], {"MASTER": "yarn"}, ""),
    ],
)
def test_the_script_keeps_spark_on_loopback_where_its_master_is_local(
    tmp_path: Path, options: list[str], environ: dict[str, str], address: str
) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text('#!/bin/sh\nprintf "%s" "$SPARK_LOCAL_IP"\n')
    submit.chmod(0o755)
    (tmp_path / "mine.conf").write_text("spark.master yarn\n")
    inherited = {name: value for name, value in os.environ.items() if name not in ("SPARK_LOCAL_IP", "MASTER")}
    found = subprocess.run(
        [PROJECT / "spark-submit.sh", *options],
        env={**inherited, "SPARK_HOME": str(tmp_path), **environ},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert found.stdout == address
