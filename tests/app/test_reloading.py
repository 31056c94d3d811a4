"""A file that is read again: all of it is sound or nothing changes, and what changed is said without secrets."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from app.properties.keys import Live
from app.reloading import ChangedLine, FileStatus, Reloaded, Reloading, changed_lines
from app.settings import Settings, load
from streaming.errors import WrongUsage
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = """clusters=a,b
a.bootstrap.servers=a:1
b.bootstrap.servers=b:1
a->b.enabled=true
b->a.enabled=true
topics=orders
"""


class File:
    """A properties file that a job reads, and what the job adopted of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mirror.properties"
        self.path.write_text(BASE)
        self.adopted: list[tuple[Settings, list[str]]] = []
        self.rejected: list[bool] = []
        self.reloading = Reloading(self.path, self.read, self.read(), self.adopt, self.rejected.append)

    def read(self, before: Settings | None = None) -> Settings:
        return load(self.path, before=before)

    def adopt(self, settings: Settings, changed: object) -> Settings:
        assert isinstance(changed, list)
        self.adopted.append((settings, [str(one) for one in changed]))
        return settings

    def write(self, text: str) -> None:
        before = self.path.stat()
        self.path.write_text(text)
        os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))

    def tick(self, times: int = 3) -> None:
        for _ in range(times):
            self.reloading.tick()


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def test_file_that_did_not_change_is_not_read_again(file: File) -> None:
    file.tick()
    assert file.adopted == []


def test_changed_filter_is_adopted_once(file: File) -> None:
    file.write(BASE.replace("topics=orders", "topics=orders,bills"))
    file.tick()
    ((settings, changed),) = file.adopted
    assert changed == ["topics: orders -> orders,bills"]
    assert all(flow.topic_filter.should_replicate_topic("bills") for flow in settings.flows)


def test_file_that_is_still_being_written_is_left_for_the_next_tick(file: File) -> None:
    for text in ("clusters=a,b\n", BASE.replace("topics=orders", "topics=ord")):
        file.write(text)
        file.tick(1)
    file.write(BASE.replace("orders", "bills"))
    file.tick(1)
    assert file.adopted == []
    file.tick(1)
    assert len(file.adopted) == 1


def test_with_one_mistake_in_the_file_nothing_changes(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.write(BASE.replace("topics=orders", "topics=bills\nlockstep.trigger.interval=often"))
    file.tick()
    assert file.adopted == []
    assert "nothing changed" in caplog.text
    assert "lockstep.trigger.interval" in caplog.text
    file.write(BASE.replace("topics=orders", "topics=bills"))
    file.tick()
    assert [changed for _, changed in file.adopted] == [["topics: orders -> bills"]]


def test_asked_to_it_reads_a_file_that_did_not_change_since_what_it_refers_to_may_have(file: File) -> None:
    answers: list[Reloaded | None] = []
    asking = threading.Thread(target=lambda: answers.append(file.reloading.ask(20)))
    asking.start()
    while not file.adopted:
        file.tick(1)
    asking.join(60)
    assert answers == [Reloaded(())]


def test_asked_for_a_file_with_a_mistake_the_answer_is_the_mistake(file: File) -> None:
    file.path.write_text("clusters=a\n")
    answers: list[Reloaded | None] = []
    asking = threading.Thread(target=lambda: answers.append(file.reloading.ask(20)))
    asking.start()
    while not answers:
        file.tick(1)
        asking.join(0.01)
    assert answers[0] is not None
    assert "clusters" in str(answers[0].error)
    assert file.adopted == []


def found(tmp_path: Path, lines: str) -> dict[str, ChangedLine]:
    path = tmp_path / "one.properties"
    path.write_text(BASE)
    before = load(path)
    path.write_text(BASE + lines)
    return {one.key: one for one in changed_lines(before, load(path))}


def test_line_of_one_flow_concerns_that_flow_alone(tmp_path: Path) -> None:
    changed = found(tmp_path, "a->b.groups=g\nsync.full.acl.enabled=true\n")
    assert changed["a->b.groups"].flows == {AB}
    assert changed["sync.full.acl.enabled"].flows == {AB, BA}


@pytest.mark.parametrize(
    ("line", "live"),
    [
        ("topics.exclude=x", Live.FLOW),
        ("lockstep.sync.topic.configs.enabled=false", Live.FLOW),
        ("lockstep.trigger.interval=2 seconds", Live.BATCH),
        ("replication.policy.separator=_", Live.QUERY),
        ("lockstep.http.port=1234", Live.JOB),
        ("a.security.protocol=PLAINTEXT", Live.JOB),
        ("offset.lag.max=4", None),
        ("a.filter.of.mine=x", Live.JOB),
        ("filter.of.mine=x", Live.FLOW),
    ],
)
def test_each_line_says_when_a_change_of_it_holds(tmp_path: Path, line: str, live: Live | None) -> None:
    (changed,) = found(tmp_path, line + "\n").values()
    assert changed.live is live


def test_values_of_secrets_are_not_shown(tmp_path: Path) -> None:
    (changed,) = found(tmp_path, "password.encoder.secret=tell-nobody-of-this\n").values()
    assert "tell-nobody" not in repr(changed)
    assert str(changed) == "password.encoder.secret: not set -> [hidden]"


@pytest.mark.parametrize("error", [WrongUsage("there is no file"), RuntimeError("s3cret")], ids=["gone", "defect"])
def test_whatever_a_reading_raises_the_job_goes_on_and_who_asked_is_told(file: File, error: Exception) -> None:
    def fails(before: Settings) -> Settings:
        raise error

    reread, file.reloading._reread = file.reloading._reread, fails
    file.reloading.request()
    file.tick(1)
    said = file.reloading._last.error or ""
    assert ("there is no file" in said) == isinstance(error, WrongUsage)
    assert "s3cret" not in said
    file.reloading._reread = reread
    file.write(BASE.replace("orders", "bills"))
    file.tick()
    assert len(file.adopted) == 1


def test_a_rejected_file_is_told_until_it_is_mended(file: File) -> None:
    for text in (f"{BASE}lockstep.sync.acl.deletes.enabled=perhaps\n", f"{BASE}lockstep.topic=x\n"):
        file.write(text)
        file.tick()
        found = file.reloading.file
        assert found.rejected_since is not None
        assert [text.splitlines()[-1].split("=")[0] in line for line in found.mistakes] == [True]
    file.write(BASE)
    file.tick()
    assert (file.rejected, file.reloading.file) == ([True, True, False], FileStatus())


def test_a_file_that_is_gone_is_rejected_and_read_again_when_it_is_back(file: File) -> None:
    text = file.path.read_text()
    file.path.unlink()
    file.tick()
    assert file.reloading.file.mistakes
    file.path.write_text(text)
    file.tick()
    assert file.rejected == [True, False]


def test_what_only_a_restart_takes_up_is_told_until_it_is_taken_back(file: File) -> None:
    for port in (1, 2):
        file.write(f"{BASE}lockstep.http.port={port}\n")
        file.tick()
        (line,) = file.reloading.file.needs_restart
        assert line.startswith(f"lockstep.http.port: not set -> {port}")
    file.write(BASE)
    file.tick()
    assert file.reloading.file.needs_restart == ()
