"""Plain data as JSON knows it: null, booleans, numbers, text, lists and maps with text keys."""

from __future__ import annotations

from collections.abc import Mapping

Json = object
"""Any JSON value. Narrow it before use; code that walks foreign documents may call it `Any`."""
JsonMap = Mapping[str, object]
"""A JSON object; keys keep their order."""
