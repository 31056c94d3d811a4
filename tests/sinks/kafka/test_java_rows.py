"""What a request costs over the gateway: calls, which do not grow with the number of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import JavaObject

from app.local.gateway_client import RELEASED_TOGETHER
from app.local.java_gateway import process_jvm
from sinks.kafka.jvm.java_rows import OBJECT, TOPIC_PARTITION, JavaRows, rows_of

Calls = Callable[[Callable[[], object]], int]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """How many calls some work makes, without those that release objects."""
    client, sent = process_jvm()._gateway_client, list[str]()
    send = client.send_command

    def counted(command: str, *arguments: Any, **options: Any) -> Any:
        sent.append(command)
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", counted)

    def of(work: Callable[[], object]) -> int:
        sent.clear()
        work()
        return sum(not one.startswith("m\n") for one in sent)

    return of


@pytest.fixture
def rows() -> JavaRows:
    return rows_of(process_jvm())


def test_all_clients_of_a_jvm_share_what_was_made_there(rows: JavaRows) -> None:
    assert rows_of(process_jvm()) is rows


def test_a_class_and_its_constants_are_asked_for_once(rows: JavaRows, calls: Calls) -> None:
    assert rows.jvm.java.util.concurrent.TimeUnit.MILLISECONDS.toString() == "MILLISECONDS"
    assert calls(lambda: rows.jvm.java.util.HashMap()) == 1
    assert calls(lambda: rows.jvm.java.util.concurrent.TimeUnit.MILLISECONDS) == 0


def test_an_inner_class_is_found_by_name(rows: JavaRows) -> None:
    assert rows.jvm.java.util.Map.Entry._fqn == "java.util.Map$Entry"


@pytest.mark.parametrize("items", [1, 300])
def test_many_futures_cost_as_few_calls_as_one(rows: JavaRows, calls: Calls, items: int) -> None:
    def asked() -> list[str]:
        made = rows.made(TOPIC_PARTITION, ([f"t-{number}", "0"] for number in range(items)))
        answers, future = rows.jvm.java.util.HashMap(), rows.jvm.org.apache.kafka.common.KafkaFuture
        answers.put("t-0-0", future.completedFuture("answer"))
        futures = rows.of_map(answers, rows.texts(["t-0-0"] * len(rows.read(rows.each(made, OBJECT, "toString")))))
        rows.all_of(futures).get()
        assert rows.errors(futures) == [None] * items
        answer: list[str] = rows.read(rows.values(futures))
        return answer

    assert asked() == ["answer"] * items
    assert calls(asked) <= 30


def test_java_forgets_many_objects_in_one_call(rows: JavaRows, monkeypatch: pytest.MonkeyPatch) -> None:
    client, sent = process_jvm()._gateway_client, list[str]()
    send, made = client.send_command, 10 * RELEASED_TOGETHER

    def counted(command: str, *arguments: Any, **options: Any) -> Any:
        sent.append(command)
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", counted)
    kept = JavaObject("GATEWAY_SERVER", client).getGateway().getBindings()
    before = kept.size()
    for _ in range(made):
        rows.jvm.java.util.HashMap()
    releases = sum(one.startswith("m\n") for one in sent)
    assert made // RELEASED_TOGETHER - 1 <= releases <= made // RELEASED_TOGETHER + 1
    assert kept.size() <= before + RELEASED_TOGETHER
