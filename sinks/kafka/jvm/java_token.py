"""The OAUTHBEARER token that Java's client of a cluster logs in with, for clients that are not Java's.

Whatever login class and callback handler the properties name, Kafka's own `LoginManager` runs them, keeps the token and
renews it. It is shared with the Admin of the same settings, so that a token is asked for once.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from sinks.faults import RightsMissing
from sinks.kafka.jvm.java_admin import JavaAdmin, gone, java_properties, unmade

SECURITY: Final = "org.apache.kafka.common.security."
TOKEN: Final = f"{SECURITY}oauthbearer.OAuthBearerToken"
LOGIN: Final = f"{SECURITY}oauthbearer.internals.OAuthBearerRefreshingLogin"
EXTENSIONS: Final = f"{SECURITY}auth.SaslExtensions"
MECHANISM: Final = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. `expires_s`: when it expires, in seconds since 1970."""

    value: str = field(repr=False)
    expires_s: float
    principal: str
    extensions: dict[str, str] = field(repr=False)


class JavaToken:
    """Bearer tokens of Java's login, which begins at the first call. Thread-safe."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin = admin
        self._lock = threading.Lock()
        self._login: Any = None

    def now(self) -> Token:
        """Returns the token that expires last. Raises RightsMissing, and LockstepError if Java cannot log in."""
        began = time.monotonic()
        try:
            with self._lock:
                if self._login is None:
                    self._login = self._logged_in()
                subject = self._login.subject()
            tokens = [
                _token(one, subject, self._admin.rows.type)
                for one in subject.getPrivateCredentials(self._admin.rows.type(TOKEN))
            ]
        except Py4JJavaError as error:
            raise unmade(self._admin.alias, self._admin.properties, error, time.monotonic() - began) from None
        except Py4JError as error:
            raise gone(self._admin.alias, "logging in", error) from None
        if not tokens:
            raise RightsMissing(
                f"cluster {self._admin.alias}: Java's login has no token any more; the token endpoint may be down"
            )
        return max(tokens, key=lambda token: token.expires_s)

    def _logged_in(self) -> Any:
        jvm, security = self._admin.jvm, self._admin.jvm.org.apache.kafka.common.security
        java = self._admin.rows.properties(java_properties(self._admin.alias, self._admin.properties))
        # As a client passes them to its login: parsed values, and settings that Kafka itself does not know.
        config = jvm.org.apache.kafka.clients.admin.AdminClientConfig(java)
        java.putAll(config.values())
        context = security.JaasContext.loadClientContext(java)
        return security.authenticator.LoginManager.acquireLoginManager(
            context, MECHANISM, self._admin.rows.type(LOGIN), java
        )

    def close(self) -> None:
        """Release the login. It ends with the last client that uses it."""
        with self._lock:
            login, self._login = self._login, None
        if login is not None:
            # With the JVM its logins are gone.
            with suppress(Py4JError):
                login.release()


def _token(token: Any, subject: Any, class_of: Any) -> Token:
    extensions = {
        str(name): str(value)
        for one in subject.getPublicCredentials(class_of(EXTENSIONS))
        for name, value in one.map().items()
    }
    return Token(token.value(), token.lifetimeMs() / 1000, token.principalName(), extensions)
