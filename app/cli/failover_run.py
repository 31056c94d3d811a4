"""How every command of a failover runs: dry, or on the flow itself, with its hooks told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.failover_output import dry_run, finish, nothing_left, one_flow, say_of, saying
from app.cli.output import Output
from app.cli.wrong_names import refuse_wrong_topics
from app.failover_session import FailoverCall, failover_session
from app.settings import Settings
from sinks.failover.scene import Scene
from sinks.flow_settings import FlowSettings
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.failover_states import Command


def nothing_more() -> dict[str, Any]:
    """For a document that is that of the state alone."""
    return {}


@dataclass(frozen=True)
class FailoverRun:
    """A command, called for one flow. `dry`: it says what it would do. Not `needs_source`: that may be gone."""

    settings: Settings
    flow: FlowSettings
    output: Output
    call: FailoverCall
    dry: bool = False
    needs_source: bool = True

    def carry_out(
        self,
        commands: Sequence[Command],
        does: Callable[[Scene], FailoverRecord],
        *,
        topics: Sequence[str] = (),
        done: Callable[[Scene], FailoverRecord | None] = lambda scene: None,
        checks: Callable[[Scene], None] = lambda scene: None,
        foresees: Callable[[Scene], dict[str, Any]] = lambda scene: {},
        tells: Callable[[], dict[str, Any]] = nothing_more,
    ) -> None:
        """Prints what came of it, or would. `commands`: those that it leads through. `topics`: named by the caller.

        For a dry run, both write nothing: `done`, the record where the command would do nothing any more; `checks`
        raises what the command itself would refuse. `foresees` and `tells` add to the document of a dry run, and of one
        that was done. Raises WrongUsage, NotNow, LockstepError.
        """
        if self.dry:
            with failover_session(
                self.settings, self.flow, self.call, needs_source=self.needs_source, writes=False
            ) as scene:
                self._check(scene, topics)
                if record := done(replace(scene, say=partial(say_of, self.flow))):
                    nothing_left(self.flow, record, self.output)
                    return
                checks(scene)
                dry_run(scene, commands, self.output, **foresees(scene))
            return
        with (
            saying(self.call, self.flow) as call,
            failover_session(self.settings, self.flow, call, needs_source=self.needs_source) as scene,
        ):
            self._check(scene, topics)
            record = does(scene)
            finish(self.flow, record, self.output, **tells())

    def _check(self, scene: Scene, topics: Sequence[str]) -> None:
        if topics:
            refuse_wrong_topics(topics, [(self.flow, scene.listed())])


def called(
    config: Path,
    flow: list[str] | None,
    output: Output,
    call: FailoverCall,
    *,
    dry: bool = False,
    needs_source: bool = True,
) -> FailoverRun:
    """A command for the one flow that is meant. Raises WrongUsage where that is more than one."""
    settings, chosen = one_flow(config, flow)
    return FailoverRun(settings, chosen, output, call, dry, needs_source)
