"""The `Aws` port over botocore: one account in one region, with retries, gates and honest failures.

Each call is tried until it is answered, refused, or may not be sent again; what a failure means comes from
`aws_failures`, what follows from `aws_retry`. A try is preceded by the caller's check, at the last moment
before the request leaves. Concurrency adapts per service and is shared by all views of one account.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

from stackhold.adapters.aws_failures import Failure, Kind, as_aws_error, is_read, is_silence, sort_failure
from stackhold.adapters.aws_gate import Gate
from stackhold.adapters.aws_retry import Again, End, Tries, next_try
from stackhold.errors import AwsError, CloudError, OutcomeUnknown, StoodDown
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackhold.adapters.aws import AwsSession, Timeouts
    from stackhold.errors import StackholdError
    from stackhold.model.ids import Region
    from stackhold.ports.aws import Aws

_WAIT_SLICE_MS = 500
_CLOCK_CORRECTIONS = 2
_ENDPOINT_HINT = "Check the network and the endpoint (AWS_ENDPOINT_URL, --region)."
_ASKING_BUDGET_MS = 30_000
_ASKING_READ_MS = 8_000
_ASKING_UNREACHED_MS = 5_000


class Gates:
    """One gate per service, made when first used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._gates: dict[str, Gate] = {}
        self._making = threading.Lock()

    def of(self, service: str) -> Gate:
        """The gate of a service."""
        gate = self._gates.get(service)
        if gate is None:
            with self._making:
                gate = self._gates.setdefault(service, Gate(self._most))
        return gate


def _nothing_to_check() -> None:
    """The check of an unguarded account."""


class Account:
    """An `Aws`. Views made by `guarded` share clients and gates."""

    def __init__(
        self,
        session: AwsSession,
        region: Region,
        *,
        max_workers: int = 32,
        gates: Gates | None = None,
        check: Callable[[], None] = _nothing_to_check,
    ) -> None:
        self._session = session
        self._region = region
        self._most = max_workers
        self._gates = gates or Gates(max_workers)
        self._check = check

    @property
    def region(self) -> Region:
        """The region that calls go to."""
        return self._region

    @property
    def partition(self) -> str:
        """The region's partition."""
        return self._session.dns_names(self._region)[0]

    def account(self) -> str:
        """The account's digits, asked once per session; impatiently, for it is often the first call of a command."""

        def ask() -> str:
            timeouts = self._session.timeouts.at_most(
                budget=_ASKING_BUDGET_MS, read=_ASKING_READ_MS, unreached=_ASKING_UNREACHED_MS
            )
            call = _Call(self._session, self._region, self._gates.of("sts"), self._check, timeouts)
            return _account_in(call.made("sts", "GetCallerIdentity", {}, Resend.SAFE))

        return self._session.account(ask)

    def guarded(self, check: Callable[[], None]) -> Aws:
        """The same account with a check before each request that is sent."""
        return Account(self._session, self._region, max_workers=self._most, gates=self._gates, check=check)

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """One API call, tried as often as it may be within the call budget."""
        call = _Call(self._session, self._region, self._gates.of(service), self._check, self._session.timeouts)
        return call.made(service, operation, params, resend, look)

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A read page by page, as botocore's description says; one call where it says nothing."""
        paging = self._session.loader().pagination(service, operation)
        if paging is None:
            yield self.call(service, operation, params)
            return
        from botocore.paginate import Paginator

        model = self._session.client(service, region=self._region).meta.service_model.operation_model(operation)

        def page(**page_params: Any) -> dict[str, Any]:  # noqa: ANN401
            return self.call(service, operation, page_params)

        yield from Paginator(page, paging, model).paginate(**params)


class _Call:
    """The tries of one call."""

    def __init__(
        self, session: AwsSession, region: Region, gate: Gate, check: Callable[[], None], timeouts: Timeouts
    ) -> None:
        self._session = session
        self._timeouts = timeouts
        self._clock = session.clock
        self._region = region
        self._gate = gate
        self._check = check
        self._tries = Tries()
        self._corrections = 0
        self._signed_with = 0

    def made(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        resend: Resend,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """Try until there is an answer or nothing more may be tried."""
        began = None
        while True:
            try:
                with self._gate.place(self._check):
                    began = self._clock.boot() if began is None else began
                    return self._once(service, operation, params, self._left(began))
            except StoodDown as stop:
                raise self._stopped(stop, service, operation) from stop
            except Exception as error:
                failure = sort_failure(error, service=service)
                self._pause(failure, error, service=service, operation=operation, resend=resend, began=began)
            if look is not None:
                self._look(look, service, operation)

    def _look(self, look: Callable[[], object], service: str, operation: str) -> None:
        """Let the caller look before the next try. An earlier try without an answer stays unknown whatever it finds."""
        try:
            look()
        except StoodDown as stop:
            raise self._stopped(stop, service, operation) from stop
        except AwsError as refused:
            refused.sent_before = refused.sent_before or self._tries.lost > 0
            raise
        except CloudError as error:
            if not self._tries.lost:
                raise
            reason = f"no further try: {error.message}"
            raise OutcomeUnknown(service=service, operation=operation, reason=reason) from error

    def _once(self, service: str, operation: str, params: Mapping[str, Any], left_ms: int) -> dict[str, Any]:
        read_ms = max(1, min(self._timeouts.read, left_ms - self._timeouts.connect))
        self._signed_with = self._session.clock_offset_ms
        answer = self._session.send(service, operation, params, region=self._region, check=self._check, read_ms=read_ms)
        for name, value in answer.items():
            if hasattr(value, "read"):
                answer[name] = value.read()
        answer.pop("ResponseMetadata", None)
        self._gate.answered()
        return answer

    def _pause(
        self, failure: Failure, error: Exception, *, service: str, operation: str, resend: Resend, began: int | None
    ) -> None:
        """Wait before the next try, or raise what ends the call."""
        if failure.kind is Kind.CLOCK and self._corrected(failure):
            return
        if failure.kind is Kind.THROTTLED:
            self._gate.throttled(self._clock.boot())
        now = self._clock.boot()
        self._tries = self._tries.with_failure(failure, at=now)
        verdict = next_try(
            self._tries,
            failure,
            resend=resend,
            left_ms=self._left(began if began is not None else now) - self._timeouts.connect,
            jitter=random.random(),
            at=now,
            patience_ms=self._timeouts.unreached,
        )
        match verdict:
            case Again():
                self._wait(verdict.wait_ms, service, operation)
            case End.UNKNOWN if not is_read(operation):
                raise OutcomeUnknown(
                    service=service, operation=operation, reason=f"{failure.code}: {failure.reason}"
                ) from error
            case End.UNKNOWN if failure.status == 0:
                how = "not answered" if is_silence(failure) else "answered with what nobody can read"
                raise CloudError(
                    f"{service}:{operation} was {how}: {failure.reason}",
                    hint=_ENDPOINT_HINT,
                ) from error
            case _:
                sent_before = self._tries.lost > (1 if failure.kind is Kind.LOST else 0)
                if failure.kind is Kind.UNSENT and sent_before and not is_read(operation):
                    raise OutcomeUnknown(service=service, operation=operation, reason=failure.reason) from error
                raise as_aws_error(failure, service=service, operation=operation, sent_before=sent_before) from error

    def _corrected(self, failure: Failure) -> bool:
        if self._corrections >= _CLOCK_CORRECTIONS or not self._session.correct_clock(
            failure.server_ms, signed_with=self._signed_with
        ):
            return False
        self._corrections += 1
        return True

    def _wait(self, ms: int, service: str, operation: str) -> None:
        """Sleep in slices, so that a run that must not start another call does not wait for one either."""
        until = self._clock.boot() + ms
        while (left := until - self._clock.boot()) > 0:
            self._clock.sleep(min(left, _WAIT_SLICE_MS))
            try:
                self._check()
            except StoodDown as stop:
                raise self._stopped(stop, service, operation) from stop

    def _stopped(self, stop: StoodDown, service: str, operation: str) -> StackholdError:
        """What a stop between tries means: an earlier try without an answer stays unknown."""
        if self._tries.lost and not is_read(operation):
            return OutcomeUnknown(service=service, operation=operation, reason=f"no further try: {stop.message}")
        return stop

    def _left(self, began: int) -> int:
        return self._timeouts.budget - (self._clock.boot() - began)


def _account_in(answer: Mapping[str, Any]) -> str:
    """The account that STS names; raises `CloudError` when it names none."""
    account = answer.get("Account")
    if not isinstance(account, str) or not account:
        raise CloudError("sts:GetCallerIdentity was answered without an account", hint=_ENDPOINT_HINT)
    return account


if TYPE_CHECKING:
    _: type[Aws] = Account
