"""Whether the passwords that are known still hold on the source: a cluster shows none, so a login with each is tried.

One login per comparison, so that many users cost no more at once than one, and each user at most once per interval:
brokers log and count what fails. Another version or other iterations are tried at the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sinks.engine.model import Key, Kind, Op
from sinks.engine.plan import Refusal
from sinks.kafka.ports.users import LoginTrial
from sinks.kinds.users.credentials import CredentialProvider
from sinks.kinds.users.rules import WantedUser

TryLogin = Callable[[str, str, str], LoginTrial]
"""Called with user, password and mechanism."""

CHANGED = (
    "the password is another one on the source: a login there with the one that is known fails; store the new one with "
    "`lockstep credentials set`, or where your provider has it"
)
UNSEEN = "whether a password was changed on {} alone cannot be seen: {}"


@dataclass(frozen=True, slots=True)
class _Tried:
    """`found`: what the password, its version and its iterations came to at the time `at`."""

    version: str | None
    iterations: int
    found: LoginTrial
    at: float


class SourceLogins:
    """Of one flow. In memory only: after a restart each is tried again."""

    def __init__(self, alias: str, log_in: TryLogin, provider: CredentialProvider, interval: float) -> None:
        """`interval`: seconds between two logins of a user with one mechanism; 0: none is ever tried."""
        self._alias, self._log_in, self._provider, self._interval = alias, log_in, provider, interval
        self._tried: dict[Key, _Tried] = {}

    def take_turn(self, wanted: Mapping[Key, WantedUser], now: float) -> None:
        """Tries the login that waited longest, if any is due. `now`: monotonic seconds."""
        self._tried = {key: tried for key, tried in self._tried.items() if key in wanted}
        due = [key for key, user in wanted.items() if self._is_due(key, user, now)] if self._interval else []
        if due:
            key = min(due, key=lambda one: (self._tried[one].at if one in self._tried else 0.0, one))
            self._tried[key] = _Tried(wanted[key].version, wanted[key].iterations, self._trial(key, wanted[key]), now)

    def _is_due(self, key: Key, user: WantedUser, now: float) -> bool:
        tried = self._tried.get(key)
        if user.version is None:
            return False
        if tried is None or (tried.version, tried.iterations) != (user.version, user.iterations):
            return True
        return now - tried.at >= self._interval

    def _trial(self, key: Key, user: WantedUser) -> LoginTrial:
        try:
            credential = self._provider.credential(user.known_as)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its users' alone
            return LoginTrial(None, type(error).__name__)
        if credential is None or credential.version != user.version:
            return LoginTrial(None, "the password was changed meanwhile")
        return self._log_in(user.known_as, credential.password, key[1])

    def refusals(self) -> list[Refusal]:
        """Users whose password is not the source's any more."""
        changed = [key for key, tried in self._tried.items() if tried.found.works is False]
        return [Refusal(Kind.SCRAM_USER, Op.UPDATE, key, CHANGED) for key in sorted(changed)]

    def notes(self) -> list[str]:
        """Why a login says nothing of the password, each reason once."""
        reasons = {tried.found.reason for tried in self._tried.values() if tried.found.works is None}
        return [UNSEEN.format(self._alias, reason) for reason in sorted(reasons)]
