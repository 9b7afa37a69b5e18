"""Reads of recorded resources outside of a run: while planning, and for drift. Nothing here changes anything."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.plan import Route
from stackhold.engines.cloudformation.resources.handler import Context
from stackhold.errors import InputError

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.route import Native
    from stackhold.model.ids import Region, StackName, TypeName
    from stackhold.ports.aws import Aws
    from stackhold.ports.engine import Looking


class HandlerOf:
    """Gives the handler of a type on a route. A resource recorded as native whose native handler does not exist goes
    to Cloud Control."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._cloud_control: dict[TypeName, Handler] = {}

    def __call__(self, type_name: TypeName, route: Route) -> Handler:
        """The handler; one per type."""
        handler = self._native(type_name) if route is Route.NATIVE else None
        if handler is not None:
            return handler
        if type_name not in self._cloud_control:
            from stackhold.engines.cloudformation.resources.cloud_control import CloudControl

            self._cloud_control[type_name] = CloudControl(type_name)
        return self._cloud_control[type_name]


def reading_context(aws: Aws, *, stack: StackName, region: Region) -> Context:
    """Where a handler reads when there is no run: waits are plain, and nothing was changed."""
    never = threading.Event()

    def wait(ms: int) -> None:
        never.wait(ms / 1000)

    return Context(
        aws=aws,
        stack=stack,
        region=region,
        account=aws.account(),
        partition=aws.partition,
        wait=wait,
        changed=lambda name: False,
    )


def looking_context(aws: Aws, run: Looking) -> Context:
    """Where a handler reads in a run that has not planned yet: every call is the run's to allow."""
    identity = run.identity
    return Context(
        aws=aws.guarded(run.check_call),
        stack=identity.stack,
        region=identity.region,
        account=aws.account(),
        partition=aws.partition,
        wait=run.wait,
        changed=lambda name: False,
    )


def refuse_other_region(aws: Aws, region: Region) -> None:
    """A stack is worked on in its own region only."""
    if aws.region != region:
        raise InputError(f"the stack is in {region}, and the calls would go to {aws.region}")
