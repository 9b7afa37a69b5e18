"""Fixtures shared by all tests: the emulators, one of each per test process, started when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from stackhold.testing import emulators

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("stackhold", deadline=None)
settings.load_profile("stackhold")


@pytest.fixture(scope="session")
def ministack_session() -> Iterator[emulators.Emulator]:
    with emulators.running("ministack") as emulator:
        yield emulator


@pytest.fixture(scope="session")
def moto_session() -> Iterator[emulators.Emulator]:
    with emulators.running("moto") as emulator:
        yield emulator


@pytest.fixture
def ministack(ministack_session: emulators.Emulator) -> emulators.Emulator:
    """ministack, empty."""
    ministack_session.reset()
    return ministack_session


@pytest.fixture
def moto(moto_session: emulators.Emulator) -> emulators.Emulator:
    """moto, empty."""
    moto_session.reset()
    return moto_session
