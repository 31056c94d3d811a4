"""Requests to the running job's HTTP server."""

from __future__ import annotations

import re
from typing import Any

import httpx

from app.addresses import base_url, reached_at
from app.http.neighbour import is_job, strangers
from app.http.protection import UNAUTHORIZED
from app.settings import JobSettings, Settings
from streaming.errors import LockstepError

RELOAD_WITHIN = 100.0
"""Seconds to wait for a reload. The job itself takes less."""

NOTHING_CHANGED = 409
"""HTTP status of a rejected reload. The answer's document has the file's mistakes."""


ERRNO = re.compile(r"^\[Errno -?\d+\] ")
"""The prefix of a system error's text in Python."""


class NoJobAnswers(LockstepError):
    """The address has no server, or a server that is not a job of Lockstep."""

    code = "NO_JOB"
    remedy = "start it with `lockstep run`, or name the properties file of the job that runs"


class PortUnknown(NoJobAnswers):
    """The file lets the job take any free port, so no command knows where it listens."""

    remedy = "give the job a fixed lockstep.http.port, and start it again with `lockstep run`"


class JobRefused(LockstepError):
    """The job refused the request. The message is the job's."""

    code = "JOB_REFUSED"
    remedy = "mend what the job says, and type the same command again; `lockstep status` shows the state of the job"


def address(job: JobSettings) -> str:
    """Returns the URL at which the job of these settings listens."""
    return base_url(reached_at(job.http_host), job.http_port)


def ask(job: JobSettings, method: str, path: str, within: float, body: object = None) -> dict[str, Any]:
    """Returns the job's answer to a request. `within`: seconds. Sends the token only to a job. Raises NoJobAnswers,
    JobRefused."""
    if not job.http_port:
        raise PortUnknown(
            "the file has lockstep.http.port = 0: its job listens at a free port that only the job knows, so no "
            "command can ask it"
        )
    where, token = address(job), job.http_token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if token and (others := strangers(reached_at(job.http_host), job.http_port, job.checkpoint_dir)):
        users = ", ".join(map(str, sorted(others)))
        raise NoJobAnswers(
            f"the process that listens at {where} belongs to user id {users}, not to you, root or the owner of "
            f"{job.checkpoint_dir}. Lockstep did not send the token. End that process, then start the job "
            "with `lockstep run`. If it is your job, give lockstep.checkpoint.dir an absolute path in a folder "
            "that only root may write"
        )
    try:
        # No proxy of the environment's: the token is for the job alone.
        with httpx.Client(trust_env=False, timeout=within) as client:
            if token and not is_job(client, where, job.checkpoint_dir):
                raise ValueError(where)
            answer = client.request(method, where + path, json=body, headers=headers)
        document: dict[str, Any] = dict(answer.json())
    except httpx.HTTPError as error:
        raise NoJobAnswers(
            f"no job answers at {where} ({ERRNO.sub('', str(error))}): start it with `lockstep run`"
        ) from error
    except (ValueError, TypeError) as error:
        raise NoJobAnswers(
            f"the program at {where} is not a job of Lockstep: set lockstep.http.host and lockstep.http.port as the "
            "running job has them"
        ) from error
    if answer.status_code == UNAUTHORIZED:
        raise JobRefused(f"the job at {where} does not accept this file's lockstep.http.token: give both the same one")
    if not answer.is_success and answer.status_code != NOTHING_CHANGED:
        raise JobRefused(f"the job at {where} refused: {document.get('error', answer.status_code)}")
    return document


def ask_reload(settings: Settings) -> dict[str, Any]:
    """Lets the job read its file and its flows' ledgers again, and returns the result. Raises as `ask`."""
    return ask(settings.job, "POST", "/reload", RELOAD_WITHIN)
