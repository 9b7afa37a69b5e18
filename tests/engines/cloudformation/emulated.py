"""Whole deploys, drift and destroys of one stack against an emulator, in this process and without a lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
from tests.inventory import inventory

from stackhold.adapters.aws import AwsSession
from stackhold.adapters.clock import SystemClock
from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.drift import drift_stack
from stackhold.engines.cloudformation.engine import DeployEngine, DestroyEngine
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.template import parse_template, parse_text
from stackhold.model.run import Outcome
from stackhold.testing.scripted_run import ScriptedRun, identity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackhold.engines.cloudformation.drift import DriftReport
    from stackhold.engines.cloudformation.engine import DeployWork
    from stackhold.model.ids import LogicalId
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import WorkResult
    from stackhold.testing.emulators import Emulator

REGION = "us-east-1"


@dataclass
class Emulated:
    """One stack on one emulator."""

    emulator: Emulator
    record: StateRecord | None = None
    options: DeployOptions = field(default_factory=DeployOptions)
    parameters: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] | None = field(default_factory=dict)
    replace: frozenset[LogicalId] = frozenset()
    runs: int = 0

    def __post_init__(self) -> None:
        self.session = AwsSession(region=REGION, profile=None)
        self.clock = SystemClock()
        self.run = ScriptedRun(self.clock)

    def client(self, service: str) -> Any:
        """A client that does not go through our code."""
        return boto3.client(
            service,
            endpoint_url=self.emulator.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def plan(self, template: str | Path) -> DeployWork:
        """What a deploy of a file or a text would do; begins a run."""
        self.runs += 1
        who = identity(stack="shop", region=REGION, run_id=f"202603{self.runs:02}T080000000Z-0badcafe")
        self.run = ScriptedRun(self.clock, who=who, record=self.record)
        return self.engine(template).plan(self.record, who)

    def engine(self, template: str | Path) -> DeployEngine:
        """The engine for a file or a text."""
        parsed = parse_text(template, file="shop.yaml") if isinstance(template, str) else parse_template(template)
        return DeployEngine(
            template=parsed,
            parameters=self.parameters,
            tags=self.tags,
            aws=self.session.aws(),
            url_suffix=self.session.url_suffix,
            options=self.options,
            allow_replace=self.replace,
        )

    def destroy_engine(self) -> DestroyEngine:
        """The engine that takes everything away."""
        return DestroyEngine(aws=self.session.aws())

    def deploy(self, template: str | Path) -> WorkResult:
        """Plan and perform."""
        result = self.plan(template).perform(self.run)
        self.record = None if result.record_gone else self.run.record
        return result

    def must_deploy(self, template: str | Path) -> None:
        """The same, for what has to succeed."""
        result = self.deploy(template)
        assert result.outcome is Outcome.SUCCEEDED, (result.error, result.summary["failures"])

    def drift(self) -> DriftReport:
        """Compare with AWS."""
        assert self.record is not None
        return drift_stack(self.record, self.session.aws(), native=handler_for)

    def destroy(self) -> WorkResult:
        """Take everything away."""
        self.runs += 1
        run_id = f"202603{self.runs:02}T080000000Z-0badcafe"
        who = identity(stack="shop", region=REGION, operation="destroy", run_id=run_id)
        self.run = ScriptedRun(self.clock, who=who, record=self.record)
        result = self.destroy_engine().plan(self.record, who).perform(self.run)
        self.record = None if result.record_gone else self.run.record
        return result

    def physical(self, logical_id: str) -> str:
        """A recorded physical id."""
        assert self.record is not None
        return next(item.physical_id for name, item in self.record.resources.items() if name == logical_id)

    def inventory(self) -> dict[str, list[str]]:
        """Everything of the services under test that exists, asked through boto3."""
        return inventory(self.client)
