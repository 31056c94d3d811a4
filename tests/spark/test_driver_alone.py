"""What another user of the machine can read of the driver, and call in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from app.local.jar_sets import PROJECT

STARTS_WITHIN = 600.0
SECRET = "not-for-everybody"

DRIVER = """
import json, socket
from pathlib import Path
from app.spark.spark_session import session
spark = session()
gateway, called = spark.sparkContext._gateway, []
rows = spark.readStream.format("rate").load()
query = rows.writeStream.foreachBatch(lambda batch, number: called.append(batch.count())).trigger(once=True).start()
query.awaitTermination(300)
port = gateway._callback_server.server_socket.getsockname()[1]
with socket.create_connection(("127.0.0.1", port), 180) as stranger:
    stranger.sendall(b"c\\np0\\nhashCode\\ne\\n")
    try:
        answer = stranger.recv(100).decode()
    except ConnectionResetError:
        answer = ""
print(json.dumps({
    "arguments": Path(f"/proc/{gateway.proc.pid}/cmdline").read_text(),
    "property": spark.conf.get("spark.acme.password"),
    "authenticates": spark.sparkContext.getConf().get("spark.authenticate"),
    "batches": len(called), "failure": str(query.exception() or ""), "answer": answer,
}))
spark.stop()
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a driver of its own found; its properties file has a secret."""
    file = tmp_path_factory.mktemp("driver") / "own.properties"
    file.write_text(f"spark.acme.password {SECRET}\n")
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--properties-file {file} pyspark-shell"}
    run = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=STARTS_WITHIN,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout.splitlines()[-1]))


def test_no_argument_of_the_jvm_has_what_a_properties_file_says(driver: dict[str, object]) -> None:
    assert SECRET not in str(driver["arguments"])
    assert driver["property"] == SECRET


def test_its_rpc_authenticates_whoever_calls(driver: dict[str, object]) -> None:
    assert driver["authenticates"] == "true"


def test_its_callback_server_answers_its_own_jvm_alone(driver: dict[str, object]) -> None:
    assert (driver["batches"], driver["failure"], driver["answer"]) == (1, "", "")
