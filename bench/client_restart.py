"""Whether a version of confluent-kafka outlives the restart of its broker: `python -m bench.client_restart --help`.

A local cluster is killed (SIGKILL) and started again several times, while `bench/restart_client.py` runs in the Python
that is named. Printed is, for each restart, how many seconds after the cluster served again each question was answered
again. Exit 1 where one was not within LIMIT, or where the client ended.

Measured with Kafka 4.3.1, one broker, away for 8 s, three times. With a limit for requests of 60 s, which none reaches:

| confluent-kafka                | Metadata              | OffsetFetch                                          |
|--------------------------------|-----------------------|------------------------------------------------------|
| 2.11.1, 2.13.2, 2.14.2, 2.15.1 | again within 10 s     | again within 10 s                                    |
| 2.16.1                         | again within a second | never after the first restart; SIGABRT at the second |

With a limit of 5 s, which OffsetFetch reaches while the coordinator is away, each of them, and 2.16.0, ends
at the first or the second restart with `rd_kafka_enq_once_del_source_return: Assertion 'eonce->refcnt > 0' failed`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import TopicSpec
from streaming.mm2.records import TopicPartition

APIS = ("Metadata", "OffsetFetch")
GROUP = "restart-group"
LIMIT = 30.0
"""Seconds after the cluster serves again within which every question is to be answered."""

VERSION = "import confluent_kafka as c; print(c.__version__, c.libversion()[0])"
CLIENT = Path(__file__).with_name("restart_client.py")


class Client:
    """The program in a process of its own, and what it said."""

    def __init__(self, python: str, bootstrap: str, timeout: float) -> None:
        command = [python, str(CLIENT), bootstrap, GROUP, str(timeout)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answers: SimpleQueue[tuple[float, str, str]] = SimpleQueue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            moment, api, result = line.split()
            self._answers.put((float(moment), api, result))

    def answered_after(self, moment: float, limit: float = LIMIT) -> dict[str, float]:
        """By API, seconds from a moment until it was first answered; those that were not within `limit` are missing."""
        found: dict[str, float] = {}
        while len(found) < len(APIS) and time.monotonic() < moment + limit and self._process.poll() is None:
            try:
                came, api, result = self._answers.get(timeout=0.2)
            except Empty:
                continue
            if result == "ok" and came >= moment:
                found.setdefault(api, came - moment)
        return found

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def close(self) -> int:
        """Its exit code after being asked to end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            return self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def measure(python: str, brokers: int, restarts: int, down: float, timeout: float) -> bool:
    """Prints a line for each restart. True where every question was answered in time after each."""
    with tempfile.TemporaryDirectory(prefix="lockstep-client-restart-") as folder, ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster("c", Path(folder), brokers))
        _make_group(cluster)
        client = Client(python, cluster.bootstrap, timeout)
        if len(client.answered_after(time.monotonic())) < len(APIS):
            client.close()
            raise SystemExit("the client had no answer from a cluster that serves")
        good = True
        for number in range(1, restarts + 1):
            cluster.kill()
            _stay_down(down)
            cluster.start()
            found = client.answered_after(time.monotonic())
            good &= len(found) == len(APIS)
            cells = [f"{api} {f'{found[api]:.1f} s' if api in found else 'not answered'}" for api in APIS]
            _say(f"restart {number}: {', '.join(cells)}")
            if client.exit_code is not None:
                _say(f"the client ended by itself with {client.exit_code}")
                return False
        code = client.close()
        _say(f"the client ended with {code} when asked to")
        return good and code == 0


def _make_group(cluster: LocalCluster) -> None:
    admin = open_cluster("c", cluster.client_properties())
    admin.create_topics({"restarts": TopicSpec(1)})
    where = TopicPartition("restarts", 0)

    def committed() -> bool:
        with suppress(ClusterUnreachable):
            return not admin.groups.commit({GROUP: {where: 0}})[GROUP][where]
        return False

    wait_for(committed, 3 * LIMIT, "the group's first commit")
    admin.close()


def _stay_down(seconds: float) -> None:
    # Not a wait for something: how long the cluster is away is what is measured against.
    time.sleep(seconds)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.client_restart", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="a Python that has the version of confluent-kafka")
    parser.add_argument("--brokers", type=int, default=1, help="nodes of the cluster, all killed together")
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--down", type=float, default=8.0, help="seconds that the cluster is away")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds that a request may take")
    options = parser.parse_args()
    _say(subprocess.run([options.python, "-c", VERSION], capture_output=True, text=True, check=True).stdout.strip())
    good = measure(options.python, options.brokers, options.restarts, options.down, options.timeout)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
