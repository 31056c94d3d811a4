"""What a SparkSession of the job's own is started with."""

from __future__ import annotations

import re

import pytest

from app.job.spark_session import _is_local, defaults


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
    ("environ", "local"),
    [
        ({}, True),
        ({"MASTER": "local[2]"}, True),
        ({"MASTER": "yarn"}, False),
        ({"PYSPARK_SUBMIT_ARGS": "--master spark://h:7077 pyspark-shell"}, False),
    ],
)
def test_only_a_local_master_keeps_to_loopback(environ: dict[str, str], local: bool) -> None:
    assert _is_local(environ) is local
