"""The emulators as handlers and as boto3 see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stackhold.adapters.aws import AwsSession
from stackhold.engines.cloudformation.resources.handler import Context, Want
from stackhold.model.ids import LogicalId, Region, StackName
from stackhold.testing.emulators import CREDENTIALS

if TYPE_CHECKING:
    from stackhold.ports.aws import Aws
    from stackhold.testing.emulators import Emulator

REGION = "us-east-1"


@dataclass(frozen=True)
class World:
    """One emulator: a handler's context, and boto3 beside it."""

    emulator: Emulator
    context: Context
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A boto3 client."""
        if service not in self.clients:
            self.clients[service] = boto3.client(
                service,
                region_name=REGION,
                endpoint_url=self.emulator.url,
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )
        return self.clients[service]

    def want(self, properties: dict[str, Any], *, name: str, run: str = "run-1", stack_tags: Any = None) -> Want:
        """What the engine would hand to a handler."""
        return Want(
            logical_id=LogicalId("Thing"),
            properties=properties,
            name=name,
            token=f"{abs(hash(name)):032x}",
            tags={
                "stackhold:stack": "suite",
                "stackhold:region": REGION,
                "stackhold:run": run,
                "stackhold:logical-id": "Thing",
            },
            stack_tags=stack_tags or {},
        )


def context_of(aws: Aws) -> Context:
    """A handler's context over `aws`; waits do not wait, since emulators are done at once."""
    return Context(
        aws=aws,
        stack=StackName("suite"),
        region=Region(REGION),
        account=aws.account(),
        partition=aws.partition,
        wait=_brief_wait,
        changed=lambda _: True,
    )


def _brief_wait(ms: int) -> None:
    import threading

    threading.Event().wait(min(ms, 100) / 1000)


@pytest.fixture(scope="session")
def worlds() -> dict[str, World]:
    """Worlds by emulator: making clients takes longer than most tests."""
    return {}


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, worlds: dict[str, World]) -> World:
    """The emulator named by an indirect parameter (ministack without one), empty."""
    kind = getattr(request, "param", "ministack")
    emulator: Emulator = request.getfixturevalue(f"{kind}_session" if _may_stay_as_it_is(request, kind) else kind)
    for key, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": emulator.url}.items():
        monkeypatch.setenv(key, value)
    if kind not in worlds:
        session = AwsSession(region=REGION, profile=None)
        worlds[kind] = World(emulator=emulator, context=context_of(session.aws()))
    return worlds[kind]


def _may_stay_as_it_is(request: pytest.FixtureRequest, kind: str) -> bool:
    """moto takes seconds to forget. What a sample without prerequisites makes is gone at the test's end."""
    sample = getattr(request.node, "callspec", None) and request.node.callspec.params.get("sample")
    return kind == "moto" and sample is not None and sample.prepare is None
