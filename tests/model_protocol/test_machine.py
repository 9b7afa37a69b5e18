"""The model as hypothesis plays it, in short."""

from __future__ import annotations

import pytest
from tests.model_protocol.machine import play


@pytest.mark.slow
def test_no_interleaving_that_hypothesis_finds_breaks_a_promise() -> None:
    play(60)
