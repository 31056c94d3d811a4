"""One AdminClient for as long as it is let live; two threads ask a cluster one question each, every half second.

Needs confluent-kafka alone, so that any version of it can be tried: `python restart_client.py BOOTSTRAP GROUP TIMEOUT`,
where a request may take TIMEOUT seconds. Prints a line for each answer, `SECONDS API RESULT`: when it came (of the
machine's monotonic clock), and `ok` or the error. Ends at a line on stdin, or with it.
"""

import sys
import threading
import time
from collections.abc import Callable

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

PAUSE = 0.5
"""Seconds between two questions."""


def main(bootstrap: str, group: str, timeout: float) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    ended = threading.Event()
    asked = [ConsumerGroupTopicPartitions(group)]
    questions: dict[str, Callable[[], object]] = {
        "Metadata": lambda: client.list_topics(timeout=timeout),
        "OffsetFetch": lambda: client.list_consumer_group_offsets(asked, request_timeout=timeout)[group].result(),
    }
    for api, request in questions.items():
        threading.Thread(target=ask, args=(api, request, ended), daemon=True).start()
    sys.stdin.readline()
    ended.set()


def ask(api: str, request: Callable[[], object], ended: threading.Event) -> None:
    while not ended.wait(PAUSE):
        try:
            request()
            result = "ok"
        except KafkaException as exception:
            result = str(exception.args[0].name())
        sys.stdout.write(f"{time.monotonic():.3f} {api} {result}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
