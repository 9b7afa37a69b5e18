"""Sessions that talk to an emulator through environment variables, as a user's process would."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stackhold.adapters.aws import AwsSession, Timeouts
from stackhold.testing.proxy import SlowProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackhold.testing.emulators import Emulator
    from stackhold.testing.proxy import SlowProxy as Proxy

    Connect = Callable[..., AwsSession]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A session of this emulator, or of a URL in front of one."""

    def open_session(emulator: Emulator, *, url: str | None = None, timeouts: Timeouts | None = None) -> AwsSession:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in {**emulator.environment(), "AWS_ENDPOINT_URL": url or emulator.url}.items():
            monkeypatch.setenv(name, value)
        return AwsSession(region=None, profile=None, timeouts=timeouts)

    return open_session


@pytest.fixture
def proxy(ministack: Emulator) -> Iterator[Proxy]:
    """A proxy in front of ministack."""
    with SlowProxy(ministack.url) as proxy:
        yield proxy
