"""What the metadata log did while its rhythm was being learnt counts as a signal once it is known."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from sinks.kafka.jvm import metadata_signal
from sinks.kafka.jvm.metadata_signal import HighestLength, JvmMetadataSignal, SamplePace
from sinks.kafka.metadata_beat import MetadataBeat
from tests.sinks.memory_flow import Clock

BEAT = 0.5


class Broker:
    """Answers as Java's Admin does, with a log that grows by one record each BEAT."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.extra, self.silent = clock, 0, False

    def describeFeatures(self) -> Broker:  # noqa: N802 - Java's name
        return self

    def featureMetadata(self) -> Broker:  # noqa: N802 - Java's name
        return self

    def finalizedFeaturesEpoch(self) -> Broker:  # noqa: N802 - Java's name
        return self

    def isPresent(self) -> bool:  # noqa: N802 - Java's name
        return not self.silent

    def get(self, *_: object) -> object:
        return int(self.clock.now / BEAT) + self.extra if not _ else self


class Sampled(JvmMetadataSignal):
    """Without the thread: samples come as the test has it."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.broker, self.passes = clock, Broker(clock), 0
        self._admin: Any = SimpleNamespace(alias="a", count=lambda *_: None)
        self._on_signal = self.note
        self._beat, self._pace, self._longest_log = MetadataBeat(), SamplePace(), HighestLength()
        self._lock, self._records, self._works, self.highest_epoch = threading.Lock(), 0, False, -1

    def note(self) -> None:
        self.passes += 1

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.clock.now += 0.1
            self._sample(self.broker, None)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Sampled:
    clock = Clock()
    monkeypatch.setattr(metadata_signal, "time", SimpleNamespace(monotonic=clock))
    made = Sampled(clock)
    made.run(10)
    made.take_signalled()
    return made


def test_a_log_that_only_beats_signals_nothing(sampled: Sampled) -> None:
    sampled.run(30)
    assert (sampled.works, sampled.take_signalled()) == (True, 0)


def test_a_change_while_the_rhythm_is_learnt_anew_is_a_signal_once_it_is_known(sampled: Sampled) -> None:
    before = sampled.passes
    sampled.broker.silent = True
    sampled.run(0.1)
    sampled.broker.silent = False
    sampled.run(1)
    sampled.broker.extra += 2
    assert not sampled.works
    sampled.run(10)
    assert sampled.works
    assert sampled.take_signalled() >= 1
    assert sampled.passes > before
