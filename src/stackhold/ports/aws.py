"""AWS as the engine sees it: named calls with plain data, refusals as one error type, no botocore."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackhold.model.ids import Region


class Resend(Enum):
    """Whether a call may be sent again when it was sent and its answer was lost."""

    SAFE = "safe"
    """A read, a call that overwrites, a delete, a create under a name or token that only we could have chosen."""
    NEVER = "never"
    """A create with neither name nor token: a second send could make a second resource. A lost answer raises
    `OutcomeUnknown`. Definite refusals (throttling and the like) are still retried."""


class Aws(Protocol):
    """One account in one region. Thread-safe. Raises `AwsError`, `OutcomeUnknown`, `StoodDown`.

    Retries of throttling and of lost answers happen inside, within the call budget; concurrency per service
    adapts to throttling there too. The caller handles the codes that only it can judge.
    """

    @property
    def region(self) -> Region:
        """The region that calls go to."""
        ...

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn`, `aws-us-gov`, …"""
        ...

    def account(self) -> str:
        """The account's 12 digits; asked once (STS GetCallerIdentity)."""
        ...

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """One API call: botocore's service name (`dynamodb`), the API's operation name (`CreateTable`), its
        parameters. The answer lacks `ResponseMetadata`. Streaming bodies come as bytes. `look` is called before each
        try but the first: for what may have changed while the call waited. What it raises ends the call."""
        ...

    def guarded(self, check: Callable[[], None]) -> Aws:
        """The same account; `check` is called directly before each request is sent, first tries and retries alike,
        and may raise `StoodDown`."""
        ...

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A read, page by page to the end."""
        ...
