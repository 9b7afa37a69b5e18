"""Runner, runtime and provider killed together: a few rounds of the bench in `kill`, on each runtime and backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.terraform_faults.kill import Killing
from tests.terraform_faults.yard import Yard, yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runtimes.catalogue import Runtime

    from stackhold.testing.emulators import Emulator

pytestmark = [pytest.mark.runtimes, pytest.mark.slow]


@pytest.fixture(params=["own", "s3"])
def field(request: pytest.FixtureRequest, runtime: Runtime, mirrors: Path, ministack: Emulator) -> Iterator[Yard]:
    with yard(runtime, request.param, emulator=ministack) as made:
        yield made


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_what_a_kill_of_all_leaves_is_named_and_cleared_only_on_proof(field: Yard, seed: int) -> None:
    assert Killing(field).play(seed).problems == ()
