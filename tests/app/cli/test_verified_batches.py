"""`cutover --batch` together with `--verify`."""

from __future__ import annotations

from typer.testing import CliRunner

from app.main import app


def test_batches_are_not_verified_at_their_end_and_it_is_said_what_to_do_instead() -> None:
    said = CliRunner().invoke(app, ["cutover", "--batch", "1", "--verify"])
    assert said.exit_code == 2
    assert "lockstep verify" in said.output
