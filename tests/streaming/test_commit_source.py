"""How the stream of commits is opened: committed transactions alone, from the offsets that it is told."""

from __future__ import annotations

import json

from streaming.commits.commit_query import CommitSource
from streaming.commits.commit_record import COMMITS_TOPIC, GROUP_PREFIX

SECRET = "org.apache.kafka.common.security.plain.PlainLoginModule required password=hush;"
SOURCE = CommitSource(
    "a",
    {"bootstrap.servers": "a:1", "sasl.jaas.config": SECRET, "isolation.level": "read_uncommitted", "group.id": "g"},
    {1: 70, 0: 5},
    0.25,
)


def test_it_begins_at_an_offset_of_each_partition_and_reads_no_other_topic() -> None:
    options = SOURCE.spark_options()
    assert json.loads(options["assign"]) == {COMMITS_TOPIC: [0, 1]}
    assert json.loads(options["startingOffsets"]) == {COMMITS_TOPIC: {"0": 5, "1": 70}}


def test_an_offset_of_a_transaction_that_may_be_aborted_is_never_read_whatever_the_file_says() -> None:
    assert SOURCE.spark_options()["kafka.isolation.level"] == "read_committed"


def test_the_clients_settings_reach_spark_but_for_the_group_which_has_our_prefix() -> None:
    options = SOURCE.spark_options()
    assert options["kafka.sasl.jaas.config"] == SECRET
    assert options["groupIdPrefix"] == GROUP_PREFIX
    assert "kafka.group.id" not in options


def test_no_secret_is_in_its_text() -> None:
    assert "hush" not in repr(SOURCE)
