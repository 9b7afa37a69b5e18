"""Takes the user and the password out of URLs in texts that people see or that are kept.

An endpoint or a proxy may be named with its credentials, and every error about it repeats its URL. What stands before
the `@` is masked in whole, since a token may stand in the user's place. After a password it is the last `@`: one that
holds what should have been escaped is then masked too, even if a part of the path goes with it.
"""

from __future__ import annotations

import re
from typing import Final

_MASK: Final = "***@"
_USER_INFO: Final = re.compile(
    r"(?<=://)(?:"
    r"[^/?#\s\"'<>:@\[\]]*:(?!\d{1,5}(?:[/?#\s\"'<>]|$))[^\s\"'<>]*@"  # no port: a password, whatever is in it
    r"|[^/?#\s\"'<>]*@"
    r")"
)


def without_user_info(text: str) -> str:
    """The text with what stands before the host of each URL masked; a text without any is given back as it is."""
    return _USER_INFO.sub(_MASK, text) if "://" in text else text
