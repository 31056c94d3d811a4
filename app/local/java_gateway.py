"""A Java process with Kafka's classes, for commands that speak to a cluster as only Java's client can."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, JavaObject, launch_gateway
from py4j.protocol import Py4JError

from app.local.jars import kafka_jars, pyspark_jar
from app.local.java import QUICK_START, java
from streaming.errors import LockstepError

OPTIONS = ("-Xmx256m", "-Xshare:auto", "-XX:+UseSerialGC", *QUICK_START)
GATEWAY_ENDS_WITHIN = 20.0
"""Seconds."""


class _Client(GatewayClient):  # type: ignore[misc]  # py4j brings no types
    """Once Ctrl-C ended a wait for Java, nobody waits for it any more: what is left to be closed ends with the process.

    py4j itself would close the connection by a method that this kind of connection lacks (py4j's pull request 440).
    """

    _interrupted = False

    def send_command(self, *arguments: Any, **options: Any) -> Any:
        """Raises KeyboardInterrupt, from the first one on at once."""
        if self._interrupted:
            raise KeyboardInterrupt
        try:
            return super().send_command(*arguments, **options)
        except (KeyboardInterrupt, AttributeError) as error:
            if not isinstance(error.__context__ if isinstance(error, AttributeError) else error, KeyboardInterrupt):
                raise
            # Nor does it tell Java of objects that are garbage.
            self._interrupted, self.is_connected = True, False
            raise KeyboardInterrupt from None


class _Gateway(JavaGateway):  # type: ignore[misc]  # py4j brings no types
    def _create_gateway_client(self) -> GatewayClient:
        return _Client(gateway_parameters=self.gateway_parameters)


def protect_callbacks(gateway: Any) -> None:
    """Lets the callback server of PySpark's gateway answer its own JVM alone. To be called once the server listens.

    PySpark protects calls to Java only: any user of the machine could call the function of a query. py4j's Java side
    can authenticate itself, but loses its token where the callback client gets a new port, so it is set again.
    """
    if gateway.callback_server_parameters.auth_token is not None:
        return
    token = secrets.token_hex(32)
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, token)
    gateway.callback_server_parameters.auth_token = token


@contextmanager
def kafka_jvm() -> Iterator[JavaGateway]:
    """py4j's gateway to it; the process ends with the block, or with this program. No Spark: it is up in a second.

    It is in a process group of its own, so that Ctrl-C leaves it to whoever has something to finish, and asks for a
    secret that this program alone has. Raises LockstepError where Java is missing or does not start.
    """
    program, classpath = java(), os.pathsep.join(map(str, kafka_jars()))
    try:
        port, token, process = launch_gateway(
            jarpath=str(pyspark_jar("py4j-*.jar")),
            classpath=classpath,
            java_path=program,
            javaopts=list(OPTIONS),
            die_on_exit=True,
            create_new_process_group=True,
            enable_auth=True,
            return_proc=True,
        )
    except (OSError, ValueError, Py4JError) as error:
        # ValueError: it ended before it said its port.
        raise LockstepError(f"{program} does not start: run `{program} {' '.join(OPTIONS)} -version`") from error
    gateway = _Gateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=GATEWAY_ENDS_WITHIN)
