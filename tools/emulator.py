"""`python -m tools.emulator`: an AWS emulator on loopback until Ctrl-C, and the variables that point a client at it."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading

from stackhold.testing import emulators


def main() -> None:
    """Start it, say how to use it, wait."""
    argparse.ArgumentParser(
        prog="python -m tools.emulator",
        description="Run an AWS emulator on loopback until Ctrl-C. Prints the variables that point stackhold, the AWS "
        "CLI and boto3 at it, to be set in another terminal.",
    ).parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with emulators.running("ministack") as emulator, contextlib.suppress(KeyboardInterrupt):
        for name, value in emulator.environment().items():
            print(f"export {name}={value}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
