"""`make demo`: one stack's life on an emulator, as a user would type it. No account, nothing outside loopback.

Deploys the 48-resource example through a slow network so that its lock can be watched, shows that a second
writer is refused, deploys again (nothing to do), changes it, finds a change made behind its back, and
destroys it. Leaves nothing behind but what it printed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import botocore.session

from stackhold.testing import emulators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
STACKHOLD = Path(sys.executable).parent / "stackhold"
TEMPLATE = "examples/wide.yaml"
SLOW_MS = 400
"""Added to each request of the first deploy, so that it lasts long enough to be watched."""


class Demo:
    """The scene: an emulator, a state folder, and commands typed into them."""

    def __init__(self, *, emulator: emulators.Emulator, state: Path) -> None:
        self.emulator = emulator
        self.state = state
        self.environment = {**os.environ, **emulator.environment(), "STACKHOLD_STATE": f"file:{state}"}

    def say(self, text: str) -> None:
        """A heading."""
        print(f"\n── {text}", flush=True)

    def type(self, line: str, *, expect: int = 0) -> None:
        """Run one command line and show it; any other exit code ends the demo."""
        print(f"$ stackhold {line}", flush=True)
        code = subprocess.run([STACKHOLD, *shlex.split(line)], env=self.environment, cwd=ROOT).returncode
        if code != expect:
            sys.exit(f"demo: exit code {code}, expected {expect}")

    def start(self, line: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start one command line in the background."""
        print(f"$ stackhold {line} &", flush=True)
        return subprocess.Popen([STACKHOLD, *shlex.split(line)], env={**self.environment, **environment}, cwd=ROOT)

    def wait_lock(self) -> None:
        """Until the background deploy holds its lock."""
        lock = self.state / "stackhold" / "wide" / "us-east-1" / "lock.json"
        give_up = time.monotonic() + 30
        while not lock.exists():
            if time.monotonic() > give_up:
                sys.exit("demo: the deploy took no lock within 30 s")
            time.sleep(0.05)

    def meddle(self) -> None:
        """Change one queue behind the record's back."""
        os.environ.update(self.emulator.environment())
        sqs = botocore.session.get_session().create_client("sqs")
        url = next(u for u in sqs.list_queues()["QueueUrls"] if "OrdersQueue" in u)
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
        print("(somebody sets the visibility timeout of OrdersQueue to 7 s by hand)")


@contextlib.contextmanager
def slow_network(target: str) -> Iterator[str]:
    """The emulator behind a proxy that delays each request."""
    port = emulators.free_port()
    command = [sys.executable, "-m", "stackhold.testing.proxy", "--target", target, "--port", str(port)]
    process = subprocess.Popen([*command, "--delay-ms", str(SLOW_MS)], stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def play(demo: Demo) -> None:
    """The scenes, in order."""
    demo.say("A first deploy: 48 resources of six services, over a slow network, watched from beside it")
    with slow_network(demo.emulator.url) as url:
        deploy = demo.start(f"deploy {TEMPLATE}", {"AWS_ENDPOINT_URL": url})
        demo.wait_lock()
        demo.type("state list --long")
        demo.say("A second writer is refused while it works, and told who holds the lock")
        demo.type("destroy wide --yes", expect=1)
        if deploy.wait(120) != 0:
            sys.exit("demo: the deploy failed")
    demo.say("The same again plans nothing")
    demo.type(f"deploy {TEMPLATE}")
    demo.say("A change: what it would do, then done")
    demo.type(f"diff {TEMPLATE} --parameter RetentionDays=30")
    demo.type(f"deploy {TEMPLATE} --parameter RetentionDays=30")
    demo.say("A change by hand is found as drift")
    demo.meddle()
    demo.type("drift wide", expect=1)
    demo.say("And all of it goes")
    demo.type("destroy wide --yes")
    demo.type("state list")


def main() -> None:
    """Set the scene, play, clear up."""
    started = time.monotonic()
    with emulators.running("ministack") as emulator, tempfile.TemporaryDirectory(prefix="stackhold-demo-") as folder:
        print(f"An AWS emulator listens on {emulator.url}; the state is in {folder}")
        play(Demo(emulator=emulator, state=Path(folder)))
    print(f"\nDone in {time.monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
