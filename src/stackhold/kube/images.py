"""Whether a text is an image reference: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`. Nothing is looked up."""

from __future__ import annotations

import re

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*")
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})")
_BARE_DIGEST = re.compile(r"[a-f0-9]{64}")
_LONGEST_NAME = 255


def image_refusal(reference: str) -> str | None:
    """Why a text names no image; None when it does."""
    rest, at, digest = reference.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "the digest after @ is none: write sha256: and 64 hexadecimal digits"
    name, tag = _split_tag(rest)
    if tag is not None and not _TAG.fullmatch(tag):
        return "the tag after : is none: letters, digits, and _ . - but not first, at most 128"
    host, path = _split_host(name)
    if host is not None and not _HOST.fullmatch(host):
        return f"{host!r} is no registry"
    if len(name) > _LONGEST_NAME:
        return f"the name is longer than {_LONGEST_NAME} characters"
    if not _PATH.fullmatch(path):
        return "the name is none: lower-case letters and digits, separated by one of . _ - or /"
    if host is None and _BARE_DIGEST.fullmatch(path):
        return "64 hexadecimal digits alone name no image"
    return None


def _split_tag(text: str) -> tuple[str, str | None]:
    """The tag stands after the last colon, unless a slash follows: then the colon is a port's."""
    name, colon, tag = text.rpartition(":")
    return (text, None) if not colon or "/" in tag else (name, tag)


def _split_host(name: str) -> tuple[str | None, str]:
    """What stands before the first slash is a registry when it looks like one, else the beginning of the path."""
    first, slash, rest = name.partition("/")
    is_host = bool(slash) and (any(each in first for each in ".:[") or first == "localhost" or first != first.lower())
    return (first, rest) if is_host else (None, name)
