"""How long a request may take, as the file says it."""

from __future__ import annotations

import pytest

from sinks.kafka.request_timeout import DEFAULT, LONGEST, SHORTEST, request_timeout
from streaming.errors import LockstepError


@pytest.mark.parametrize(
    ("properties", "seconds"),
    [
        ({}, DEFAULT),
        ({"request.timeout.ms": "20000"}, 20.0),
        ({"default.api.timeout.ms": "5000"}, 5.0),
        ({"default.api.timeout.ms": "5000", "request.timeout.ms": "20000"}, 5.0),
        ({"default.api.timeout.ms": "1"}, SHORTEST),
        ({"default.api.timeout.ms": "3600000"}, LONGEST),
    ],
)
def test_the_limit_of_a_whole_call_counts_before_that_of_one_request(
    properties: dict[str, str], seconds: float
) -> None:
    assert request_timeout("b", properties) == seconds


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(LockstepError, match=r"cluster b: request\.timeout\.ms must be a whole number"):
        request_timeout("b", {"default.api.timeout.ms": "5000", "request.timeout.ms": "20s"})
