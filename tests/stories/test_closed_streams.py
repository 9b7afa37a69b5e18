"""Standard output and standard error that are closed, or whose reader leaves: the run goes on to its end."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import STACKHOLD, Result, wait_until
from tests.stories.slow_chain import STACK, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene
    from tests.stories.slow_chain import Chain

pytestmark = [pytest.mark.emulator, pytest.mark.story]

ALL = {"First", "Second", "Third"}


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


@pytest.mark.parametrize(
    "command",
    [
        "deploy chain.yaml >&-",
        "deploy chain.yaml 2>&-",
        "deploy chain.yaml >&- 2>&-",
        "deploy chain.yaml 2>/dev/full",
        "deploy chain.yaml | head -1",
        "deploy chain.yaml --json 2>&-",
        "deploy chain.yaml --json | head -1",
    ],
)
def test_a_deploy_needs_nobody_who_listens(chain: Chain, command: str) -> None:
    done = typed(chain, command)
    assert done.code == 0, done.err
    wait_until(lambda: chain.recorded() == ALL and chain.scene.lock(STACK) is None, "the end of the run")
    assert chain.in_cloud() == ALL
    assert chain.last_run()["outcome"] == "succeeded"
    chain.converges()


@pytest.mark.parametrize("command", ["deploy chain.yaml >/dev/full", "deploy chain.yaml --json 2>/dev/full"])
def test_a_plan_that_cannot_be_shown_is_not_carried_out(chain: Chain, command: str) -> None:
    done = typed(chain, command)
    assert done.code == 1
    assert "the output cannot be written: No space left on device" in done.out + done.err
    assert chain.in_cloud() == chain.recorded() == set()
    assert chain.scene.lock(STACK) is None
    chain.converges()


def typed(chain: Chain, command: str) -> Result:
    """A line typed into a shell."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.quote(STACKHOLD)} {command}"],
        env=chain.scene.env(),
        cwd=chain.scene.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_leaves_during_a_run_does_not_stop_it(chain: Chain, stream: str) -> None:
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    pipe = getattr(running.process, stream)
    pipe.close()
    held.release()
    assert running.process.wait(60) == 0
    assert chain.in_cloud() == chain.recorded() == ALL
    assert chain.scene.lock(STACK) is None
