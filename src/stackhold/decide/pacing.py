"""How often a growing document is written, so that the bytes grow with the run's length, not with its square.

Every change could be followed by a write of the whole document; with n changes of a document that grows with n, that
would be n² bytes. Instead a write earns a pause in proportion to its size: the bytes per second are bounded.
"""

from __future__ import annotations

SAVE_FLOOR_MS = 300
LOG_FLOOR_MS = 2_000
_BYTES_PER_MS = 512
"""About half a megabyte a second."""


def pause_after(size: int, *, floor_ms: int) -> int:
    """How long to wait after a write of `size` bytes before the next one, in milliseconds."""
    return max(floor_ms, size // _BYTES_PER_MS)
