"""A command that is killed at a chosen request, and what the next ones make of that.

The proxy sees each request; at the chosen one it kills the command with SIGKILL: before it forwards the request,
after the emulator has carried it out, or it keeps the request and lets it land when the story says so.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tests.inventory import inventory

from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stories.scene import Running, Scene

    from stackhold.testing.proxy import Call

Position = Literal["before", "after", "late"]
STACK = "shop"
_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Point:
    """The n-th request of an operation (from 0), and when the command dies at it."""

    service: str
    operation: str
    position: Position
    skip: int = 0

    def __str__(self) -> str:
        return f"{self.position}-{self.operation}-{self.skip}"


@dataclass
class Killing:
    """A stack in a scene whose commands are killed."""

    scene: Scene
    proxy: SlowProxy

    def kill(self, *command: str, at: Point) -> Rule:
        """Run a command and kill it at a point; a late request is held until the rule is released."""
        running: list[Running] = []
        is_started = threading.Event()

        def end(_: Call) -> None:
            is_started.wait(_PATIENCE_SECONDS)
            running[0].process.kill()

        is_late = at.position == "late"
        rule = self.proxy.add(
            Rule(
                service=at.service,
                operation=at.operation,
                skip=at.skip,
                times=1,
                hold=threading.Event() if is_late else None,
                before=end if at.position == "before" else None,
                after=end if at.position == "after" else None,
                drop=None if at.position == "late" else at.position,
            )
        )
        running.append(self.scene.start(*command, env={"AWS_ENDPOINT_URL": self.proxy.url}))
        is_started.set()
        rule.wait_reached()
        if is_late:
            running[0].process.kill()
        assert running[0].finish().code < 0
        return rule

    def unlock(self) -> None:
        """Clear the lock of the dead."""
        self.scene.run("force-unlock", STACK, "--yes")

    def held(self) -> dict[str, int]:
        """How many of each kind exist."""
        return {kind: len(names) for kind, names in inventory(self.scene.client).items()}

    def deploy(self, template: Path, *flags: str) -> Any:
        """Deploy without a proxy; its report."""
        return self.scene.run("deploy", str(template), "--stack-name", STACK, "--json", *flags).json()

    def destroy(self) -> None:
        """Destroy without a proxy."""
        self.scene.run("destroy", STACK, "--yes")

    def assert_recorded(self) -> None:
        """Every resource of the record exists, and none waits for its deletion."""
        record = self.scene.record(STACK)
        assert not record.get("pendingDeletes")
        assert self.scene.run("drift", STACK, "--json").json()["isDrifted"] is False


@contextlib.contextmanager
def killing_in(scene: Scene) -> Iterator[Killing]:
    """The scene's emulator behind a proxy."""
    with SlowProxy(scene.emulator.url) as proxy:
        yield Killing(scene, proxy)
