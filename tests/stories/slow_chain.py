"""Three parameters in a row, and a deploy or destroy of them that hangs at the second.

The first is done, the second is in flight in the proxy, the third must not start: each way to stop shows itself in
what becomes of these three.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tests.stories.scene import wait_until

from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Running, Scene

STACK = "chain"
NAMES = {"First": "chain-first", "Second": "chain-second", "Third": "chain-third"}
CHAIN = """
Resources:
  First:
    Type: AWS::SSM::Parameter
    Properties: {Name: chain-first, Type: String, Value: one}
  Second:
    Type: AWS::SSM::Parameter
    DependsOn: First
    Properties: {Name: chain-second, Type: String, Value: two}
  Third:
    Type: AWS::SSM::Parameter
    DependsOn: Second
    Properties: {Name: chain-third, Type: String, Value: three}
"""


@dataclass
class Chain:
    """The stack in a scene, its emulator behind a proxy."""

    scene: Scene
    proxy: SlowProxy

    def deploy(self, *flags: str, env: dict[str, str] | None = None) -> Running:
        """Start a deploy through the proxy."""
        return self.scene.start("deploy", "chain.yaml", *flags, env=self._env(env))

    def destroy(self, *flags: str, env: dict[str, str] | None = None) -> Running:
        """Start a destroy through the proxy."""
        return self.scene.start("destroy", STACK, "--yes", *flags, env=self._env(env))

    def hold(self, operation: str = "PutParameter", *, skip: int = 1, drop: Literal["before"] | None = None) -> Rule:
        """Hold the second call of an operation in the proxy until it is released; with `drop` it then never lands."""
        rule = Rule(service="ssm", operation=operation, skip=skip, times=1, hold=threading.Event(), drop=drop)
        return self.proxy.add(rule)

    def in_cloud(self) -> set[str]:
        """Which of the three exist, asked directly."""
        found = self.scene.client("ssm").get_parameters(Names=list(NAMES.values()))["Parameters"]
        return {name for name, physical in NAMES.items() if physical in {each["Name"] for each in found}}

    def recorded(self) -> set[str]:
        """Which of the three are in the record as it lies in the store; none when there is no record."""
        path = self.scene.file(STACK)
        return set(json.loads(path.read_text())["resources"]) if path.exists() else set()

    def stored(self, name: str) -> Any:
        """An object of the stack as JSON."""
        return json.loads(self.scene.file(STACK, name).read_text())

    def has(self, name: str) -> bool:
        """Whether an object of the stack is in the store."""
        return self.scene.file(STACK, name).exists()

    def runs(self) -> list[dict[str, Any]]:
        """The logs of all runs, oldest first, as they lie in the store."""
        found = []
        for path in sorted(self.scene.file(STACK, "events").glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                found.append(json.loads(path.read_text()))
        return found

    def last_run(self) -> dict[str, Any]:
        """The log of the latest run; empty before it is there."""
        return (self.runs() or [{}])[-1]

    def wait_told(self, kind: str) -> dict[str, Any]:
        """Wait until the run at work tells an event of a kind through the store; that event."""
        found: list[dict[str, Any]] = []

        def is_told() -> bool:
            found[:] = [each for each in self.last_run().get("events", []) if each["kind"] == kind]
            return bool(found)

        wait_until(is_told, f"the event {kind}")
        return found[-1]

    def deployed(self) -> None:
        """Deploy all three, without the proxy."""
        self.scene.run("deploy", "chain.yaml")
        assert self.in_cloud() == self.recorded() == set(NAMES)

    def converges(self) -> None:
        """The next deploy needs no manual step, and the one after it finds nothing to do."""
        self.deployed()
        assert self.scene.lock(STACK) is None
        assert not self.has("run.json")
        assert self.scene.run("deploy", "chain.yaml", "--json").json()["isEmpty"] is True

    def _env(self, extra: dict[str, str] | None) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": self.proxy.url, **(extra or {})}


@contextlib.contextmanager
def chain_in(scene: Scene) -> Iterator[Chain]:
    """The chain's template in the scene's folder, and a proxy before its emulator."""
    scene.write("chain.yaml", CHAIN)
    with SlowProxy(scene.emulator.url) as proxy:
        yield Chain(scene, proxy)
