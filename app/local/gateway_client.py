"""py4j's gateways: to Lockstep's own Java process, which starts while Python imports, and to PySpark's."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, JavaObject
from py4j.protocol import ERROR, REFERENCE_TYPE, Py4JNetworkError, get_return_value

from sinks.faults import JavaGone

THROWN = ERROR + REFERENCE_TYPE
"""Prefix of an answer that is a Java exception."""

RELEASE, RELEASED = "m\nd\n{}\ne\n", b"!yv\n"
"""py4j's message that lets Java forget an object, and Java's answer."""

RELEASED_TOGETHER = 100
"""Objects that one call lets Java forget. Some are large answers, so the number must stay small."""

ENDED = "the Java process that asks clusters has ended: something killed it (is the machine out of memory?)"


class _Client(GatewayClient):  # type: ignore[misc]  # py4j brings no types
    """A py4j client that Ctrl-C can end. After Ctrl-C has ended a wait for Java, no call waits for Java again, and open
    calls end with the process.

    py4j itself would close the connection with a method that this kind of connection lacks (py4j's pull request 440).
    """

    _interrupted = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._garbage = deque[str]()

    def garbage_collect_object(self, target_id: str) -> None:
        """Lets Java forget an object later, together with others. Separate calls would be a third of a command's
        calls."""
        self._garbage.append(target_id)
        if len(self._garbage) < RELEASED_TOGETHER or not self.is_connected:
            return
        released = list[str]()
        # Other threads take from it as well.
        with suppress(IndexError):
            while len(released) < RELEASED_TOGETHER:
                released.append(self._garbage.popleft())
        if released:
            self._release(released)

    def _release(self, objects: Sequence[str]) -> None:
        _, connection = self.send_command("".join(map(RELEASE.format, objects)), binary=True)
        try:
            with connection:
                connection.read(len(RELEASED) * (len(objects) - 1))
        except KeyboardInterrupt:
            # Where objects are collected nothing can be raised.
            self._interrupted, self.is_connected = True, False
            raise

    def send_command(self, *arguments: Any, **options: Any) -> Any:
        """Sends a call. Raises KeyboardInterrupt after the first Ctrl-C, JavaGone if the process has ended."""
        if self._interrupted:
            raise KeyboardInterrupt
        try:
            answer = super().send_command(*arguments, **options)
        except Py4JNetworkError as error:
            raise JavaGone(ENDED) from error
        except (KeyboardInterrupt, AttributeError) as error:
            if not isinstance(error.__context__ if isinstance(error, AttributeError) else error, KeyboardInterrupt):
                raise
            # Nor does it tell Java of objects that are garbage.
            self._interrupted, self.is_connected = True, False
            raise KeyboardInterrupt from None
        if answer == ERROR:
            # So py4j tells of a connection that broke in the middle of an answer.
            raise JavaGone(ENDED)
        if isinstance(answer, str) and answer.startswith(THROWN):
            # PySpark, where it runs as well, would ask its own JVM about this exception.
            get_return_value(answer, self, None, "a request")
        return answer


class _Gateway(JavaGateway):  # type: ignore[misc]  # py4j brings no types
    def _create_gateway_client(self) -> GatewayClient:
        return _Client(gateway_parameters=self.gateway_parameters)


def connected(port: int, token: str) -> JavaGateway:
    """Returns a gateway. It connects with the first call."""
    return _Gateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))


def start_callbacks(gateway: Any, start: Callable[[Any], object]) -> None:
    """Start the callback server of PySpark's gateway, unless it runs, and have it answer only its own JVM.

    PySpark protects only calls to Java, so any user of the machine could call the function of a query. A connection
    needs the token only if the server had one when it began, so the server gets it before it listens. py4j's Java side
    can authenticate itself, but loses its token when the callback client gets a new port. So it gets it afterwards.
    `start`: PySpark's `ensure_callback_server_started`.
    """
    parameters = gateway.callback_server_parameters
    if parameters.auth_token is None:
        parameters.auth_token = secrets.token_hex(32)
    start(gateway)
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, parameters.auth_token)
