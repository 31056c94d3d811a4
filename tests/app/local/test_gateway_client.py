"""Who may call back into Python through PySpark's gateway."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from py4j.clientserver import JavaParameters, PythonParameters, PythonServer
from py4j.protocol import CALL_PROXY_COMMAND_NAME

from app.local import gateway_client
from app.local.gateway_client import start_callbacks

ANSWERS_WITHIN_S = 2.0


class Function:
    """In place of the function of a query."""

    called = False

    def call(self) -> None:
        """As ForeachBatchFunction does."""
        self.called = True


def connected(server: PythonServer) -> socket.socket | None:
    """A connection; None until the server listens."""
    try:
        return socket.create_connection(("127.0.0.1", server.get_listening_port()), ANSWERS_WITHIN_S)
    except ConnectionRefusedError:
        return None


def test_who_connects_as_soon_as_the_callback_server_listens_needs_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_client, "JavaObject", MagicMock())
    parameters = PythonParameters(port=0, daemonize=True, daemonize_connections=True)
    function, strangers = Function(), list[socket.socket]()
    pool = SimpleNamespace(pool={"p0": function}, enable_memory_management=False, auto_field=False)
    server = PythonServer(MagicMock(), JavaParameters(auth_token="java"), parameters, pool)

    def start(gateway: object) -> None:
        server.start()
        while (stranger := connected(server)) is None:
            time.sleep(0.001)
        strangers.append(stranger)
        stranger.sendall(f"{CALL_PROXY_COMMAND_NAME}\np0\ncall\ne\n".encode())

    start_callbacks(MagicMock(callback_server_parameters=parameters), start)
    try:
        assert strangers[0].recv(100) == b""
    except ConnectionResetError:
        pass
    finally:
        strangers[0].close()
        server.shutdown()
    assert not function.called
