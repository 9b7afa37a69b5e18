"""The only file that builds AWS clients: one botocore session, its clients, and how a request leaves.

Botocore's own settings count (`AWS_ENDPOINT_URL` and its variants per service, profiles, SSO, proxies, CA
bundles). Two of its habits are turned off: it never sends a request a second time (what may be sent again is
decided in `aws_retry`), and it never signs with a clock that the service has called wrong. Everything that a
client sends passes `_before_send`, which is where a run's last check happens.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stackhold._version import __version__
from stackhold.adapters.aws_failures import one_line
from stackhold.adapters.clock import SystemClock
from stackhold.errors import Bug, InputError
from stackhold.model.ids import region_name
from stackhold.model.user_info import without_user_info

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.adapters.aws_models import QuickLoader
    from stackhold.model.ids import Region
    from stackhold.ports.aws import Aws
    from stackhold.ports.clock import Clock

CALL_BUDGET_MS = 240_000
"""No call, its retries included, lasts longer (spec 2)."""
CONNECT_MS = 10_000
READ_MS = 60_000
UNREACHED_MS = 20_000
_SKEW_MATTERS_MS = 60_000
_SIGNED_AT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, in milliseconds. All of a call's tries fit into `budget`."""

    budget: int = CALL_BUDGET_MS
    connect: int = CONNECT_MS
    read: int = READ_MS
    unreached: int = UNREACHED_MS
    """How long a service is called again that cannot be reached."""

    @classmethod
    def within(cls, budget: int) -> Timeouts:
        """Timeouts that leave room inside a budget that may be short."""
        return cls(budget=budget, connect=max(1, min(CONNECT_MS, budget // 4)), read=max(1, min(READ_MS, budget)))

    def at_most(self, *, budget: int, read: int, unreached: int) -> Timeouts:
        """The same, but less patient."""
        return replace(
            self,
            budget=min(self.budget, budget),
            read=min(self.read, read),
            unreached=min(self.unreached, unreached),
        )


class _Sending(threading.local):
    """What holds for the request that this thread is sending."""

    check: Callable[[], None] | None = None
    read_ms: int | None = None
    has_left: bool = False
    """Whether the request was given to the network, so that what fails after that fails on its answer."""


class AwsSession:
    """One set of credentials and settings, and the clients made from it. Thread-safe; nothing is loaded before use."""

    def __init__(
        self,
        *,
        region: str | None,
        profile: str | None,
        clock: Clock | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 40,
    ) -> None:
        """`region` and `profile` as the user named them, or None for what environment and profile say."""
        self._named_region = region
        self._profile = profile
        self.clock: Clock = clock or SystemClock()
        self.timeouts = timeouts or Timeouts()
        self._connections = connections
        self._making = threading.RLock()
        self._session: Any = None
        self._loader: QuickLoader | None = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._accounts: dict[str, str] = {}
        self._asking = threading.Lock()
        self._sending = _Sending()
        self._clock_offset_ms = 0

    @property
    def region(self) -> Region:
        """The region that is meant when none is named; raises `InputError` when there is none."""
        found = self._named_region or os.environ.get("AWS_REGION") or self._configured_region()
        if not found:
            raise InputError("no region is named", hint="Name one with --region, AWS_REGION or the profile's settings.")
        return region_name(str(found))

    def _configured_region(self) -> str | None:
        """What botocore says; an empty variable, which stops its search, counts as not set."""
        session = self._botocore()
        with self._making, _as_input_errors(self._profile):
            found = session.get_config_variable("region") or session.get_scoped_config().get("region")
        return str(found) if found else None

    @property
    def profile(self) -> str | None:
        """The profile as the user named it."""
        return self._profile

    @property
    def url_suffix(self) -> str:
        """The suffix of the region's endpoints: `amazonaws.com`, `amazonaws.com.cn`, …"""
        return self.dns_names(self.region)[1]

    def dns_names(self, region: Region) -> tuple[str, str]:
        """A region's partition and URL suffix."""
        from stackhold.adapters.aws_models import dns_names

        return dns_names(self.loader(), region)

    def aws(self, region: Region | None = None, *, max_workers: int = 32) -> Aws:
        """The account in one region, by default the session's, for at most so many calls to a service at once."""
        from stackhold.adapters.aws_account import Account

        return Account(self, region or self.region, max_workers=max_workers)

    def account(self, ask: Callable[[], str]) -> str:
        """The account's digits, found with `ask` the first time only."""
        found = self._accounts.get("id")
        if found is None:
            with self._asking:
                found = self._accounts.get("id")
                if found is None:
                    found = self._accounts["id"] = ask()
        return found

    def client(self, service: str, *, region: Region | None = None, **settings: Any) -> Any:  # noqa: ANN401
        """A botocore client, made when first asked for and then shared; `settings` go to its `Config`.

        One is made at a time: botocore's session is not safe for more. A client with settings is not shared.
        """
        key = (service, region or self.region)
        if settings:
            with self._making:
                return self._make(service, key[1], settings)
        found = self._clients.get(key)
        if found is None:
            with self._making:
                found = self._clients.get(key)
                if found is None:
                    found = self._clients[key] = self._make(service, key[1], settings)
        return found

    def send(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        region: Region | None = None,
        check: Callable[[], None] | None = None,
        read_ms: int | None = None,
    ) -> dict[str, Any]:
        """Send one request, once. The answer, or the exception, as botocore gives it; `check` runs right before.

        Whatever else botocore raises over an answer that it cannot make sense of is an `AnswerUnreadable`.
        """
        from botocore import xform_name

        from stackhold.adapters.aws_failures import AnswerUnreadable, is_sortable

        client = self.client(service, region=region)
        method = getattr(client, xform_name(operation), None)
        if method is None:
            raise Bug(f"botocore knows no operation {service}:{operation}")
        self._sending.check, self._sending.read_ms, self._sending.has_left = check, read_ms, False
        try:
            answer: object = method(**params)
        except Exception as error:
            if self._sending.has_left and not is_sortable(error):
                raise AnswerUnreadable(error) from error
            raise
        finally:
            self._sending.check = self._sending.read_ms = None
        if not isinstance(answer, dict):
            raise AnswerUnreadable(answer)
        return answer

    @property
    def clock_offset_ms(self) -> int:
        """What is added to our clock when a request is signed."""
        return self._clock_offset_ms

    def correct_clock(self, server_ms: int | None, *, signed_with: int) -> bool:
        """Sign by the service's time from now on, when an answer shows that ours was off.

        `signed_with` is the offset that the refused request was signed with: another thread may have corrected
        the clock since. Says whether a new try makes sense.
        """
        if server_ms is None:
            return False
        offset = server_ms - time.time_ns() // 1_000_000
        if abs(offset - signed_with) < _SKEW_MATTERS_MS:
            return False
        self._clock_offset_ms = offset
        return True

    def loader(self) -> QuickLoader:
        """What reads botocore's service descriptions."""
        self._botocore()
        assert self._loader is not None
        return self._loader

    def endpoint(self, service: str) -> str | None:
        """The endpoint that environment or profile set for a service; None for AWS's own."""
        from botocore.configprovider import ConfiguredEndpointProvider

        session = self._botocore()
        with self._making, _as_input_errors(self._profile):
            if str(session.get_config_variable("ignore_configured_endpoint_urls")).lower() == "true":
                return None
            provider = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), service)
            found = provider.provide()
        return str(found) if found else None

    def _botocore(self) -> Any:  # noqa: ANN401
        if self._session is None:
            with self._making:
                if self._session is None:
                    self._session = self._open()
        return self._session

    def _open(self) -> Any:  # noqa: ANN401
        import botocore.session
        from botocore.configprovider import ConstantProvider

        from stackhold.adapters.aws_models import QuickLoader

        session = botocore.session.Session(profile=self._profile)
        if self._profile is None and session.get_config_variable("profile") == "":
            session.get_component("config_store").set_config_provider("profile", ConstantProvider(None))
        with _as_input_errors(self._profile):
            self._loader = QuickLoader(session.get_config_variable("data_path"))
        session.register_component("data_loader", self._loader)
        session.register("before-send", self._before_send)
        return session

    def _make(self, service: str, region: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
        from botocore.config import Config

        local = _is_local(_host(self.endpoint(service)))
        config = Config(
            **{
                "retries": {"total_max_attempts": 1, "mode": "standard"},
                "max_pool_connections": self._connections,
                "connect_timeout": self.timeouts.connect / 1000,
                "read_timeout": self.timeouts.read / 1000,
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
                "tcp_keepalive": True,
                "user_agent_extra": f"stackhold/{__version__}",
                **({"s3": {"addressing_style": "path"}, "inject_host_prefix": False} if local else {}),
                **settings,
            }
        )
        with _as_input_errors(self._profile):
            client = self._botocore().create_client(service, region_name=region, config=config)
        self._sign_by_corrected_clock(client)
        return client

    def _before_send(self, request: Any, **_: Any) -> None:  # noqa: ANN401
        if self._sending.check is not None:
            self._sending.check()
        if self._sending.read_ms is not None:
            request.context["read_timeout"] = max(0.001, self._sending.read_ms / 1000)
        self._sending.has_left = True

    def _sign_by_corrected_clock(self, client: Any) -> None:  # noqa: ANN401
        """Let the client's signer move the time that it signs with by what `correct_clock` found.

        Botocore has no setting for it: it reads the clock inside `add_auth`, so its next step is wrapped.
        """
        signer = client._request_signer
        make = signer.get_auth_instance

        def corrected(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            auth = make(*args, **kwargs)
            modify = getattr(auth, "_modify_request_before_signing", None)
            offset = self._clock_offset_ms
            if modify is not None and offset:

                def shifted(request: Any) -> None:  # noqa: ANN401
                    moment = datetime.strptime(request.context["timestamp"], _SIGNED_AT)
                    request.context["timestamp"] = (moment + timedelta(milliseconds=offset)).strftime(_SIGNED_AT)
                    modify(request)

                auth._modify_request_before_signing = shifted
            return auth

        signer.get_auth_instance = corrected


class _as_input_errors:  # reads as a clause
    """Turns what botocore says about profiles and settings into one line with a hint."""

    def __init__(self, profile: str | None) -> None:
        self._profile = profile

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            return
        from botocore import exceptions as b

        match error:
            case b.ProfileNotFound():
                name = self._profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or ""
                raise InputError(
                    f"there is no AWS profile {name!r}", hint="`aws configure list-profiles` shows those there are."
                ) from error
            case b.UnknownServiceError():
                raise Bug(f"botocore knows no such service: {one_line(error)}") from error
            case b.BotoCoreError() | ValueError():
                raise InputError(
                    f"the AWS settings cannot be used: {one_line(error)}",
                    hint="Check AWS_ENDPOINT_URL, AWS_CONFIG_FILE and the profile.",
                ) from error


def _host(endpoint: str | None) -> str:
    """The host of an endpoint; empty for AWS's own. What cannot be called is refused before it reaches botocore."""
    try:
        parts = urlsplit(endpoint or "")
        _ = parts.port
    except ValueError:
        raise InputError(
            f"the AWS settings cannot be used: {without_user_info(str(endpoint))!r} is no endpoint",
            hint="Check AWS_ENDPOINT_URL and its variants for single services.",
        ) from None
    return (parts.hostname or "").strip("[]")


def _is_local(host: str) -> bool:
    """Whether a host is a bare address or this machine: such hosts have no names below them."""
    return host == "localhost" or host.endswith(".localhost") or ":" in host or host.replace(".", "").isdigit()
