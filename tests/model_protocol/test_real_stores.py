"""The same trials over the stores that ship: a directory, and a bucket of an emulator. No request lands late there.

Faults, pauses and time are the model's; conditions and versions are the adapters' own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import boto3
import pytest
from tests.model_protocol.trial import Trial

from stackhold.adapters.aws import AwsSession
from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.adapters.s3 import S3Store
from stackhold.testing.turns import Carriers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackhold.ports.store import Store
    from stackhold.testing.emulators import Emulator


@pytest.fixture
def carriers() -> Iterator[Carriers]:
    carriers = Carriers()
    yield carriers
    carriers.close()


def play(seed: int, carriers: Carriers, inner: Store, *, wild_steps: int) -> int:
    trial = Trial(seed, carriers, wild_steps=wild_steps, inner=inner, has_late=False)
    return trial.run()


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_trial_over_a_directory_breaks_a_promise(seed: int, carriers: Carriers, tmp_path: Path) -> None:
    assert play(seed, carriers, DirectoryStore(tmp_path, clock=SystemClock()), wild_steps=300) >= 300


@pytest.mark.emulator
@pytest.mark.parametrize("seed", range(1, 5))
def test_no_trial_over_a_bucket_breaks_a_promise(
    seed: int, carriers: Carriers, ministack: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in ministack.environment().items():
        monkeypatch.setenv(name, value)
    bucket = f"state-of-trial-{seed}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    store = S3Store(bucket, session=AwsSession(region=None, profile=None), clock=SystemClock())
    assert play(seed, carriers, store, wild_steps=200) >= 200
