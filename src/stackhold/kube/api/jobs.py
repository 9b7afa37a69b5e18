"""The Job policy: how the Jobs of an object run. Every field is optional and has its default at reconcile only."""

from typing import Annotated, ClassVar

from stackhold.kube.api.kubernetes import EnvVar, Named, PodSecurityContext, Resources, SecurityContext
from stackhold.kube.api.rules import CLOCKS, DEADLINE_RANGE, HISTORY_RANGE, LOCK_TIMEOUT_RANGE
from stackhold.kube.api.shapes import Rule, Shape, at_most, number, text


class JobPolicy(Shape, frozen=True, kw_only=True):
    """How the Jobs run: their two clocks, their history and their pods."""

    rules: ClassVar[tuple[Rule, ...]] = (CLOCKS,)
    active_deadline_seconds: (
        Annotated[int, number("When a Job must be over; unset is 3600. Above lockTimeoutSeconds.", *DEADLINE_RANGE)]
        | None
    ) = None
    lock_timeout_seconds: (
        Annotated[int, number("How long a step waits for the state lock; unset is 300.", *LOCK_TIMEOUT_RANGE)] | None
    ) = None
    successful_jobs_history_limit: (
        Annotated[int, number("Succeeded Jobs kept per operation; unset is 3.", *HISTORY_RANGE)] | None
    ) = None
    failed_jobs_history_limit: (
        Annotated[int, number("Failed Jobs kept per operation; unset is 3.", *HISTORY_RANGE)] | None
    ) = None
    service_account_name: (
        Annotated[str, text("The service account; it must carry captf.io/runner=true.", longest=253)] | None
    ) = None
    image_pull_secrets: (
        Annotated[tuple[Named, ...], at_most(10, "For the module image and the runner's.", keyed_by="name")] | None
    ) = None
    resources: Resources | None = None
    env: Annotated[tuple[EnvVar, ...], at_most(64, "Variables of the main container.", keyed_by="name")] | None = None
    security_context: SecurityContext | None = None
    pod_security_context: PodSecurityContext | None = None
