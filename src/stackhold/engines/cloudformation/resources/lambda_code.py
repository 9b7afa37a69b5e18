"""From a function's `Code` to what Lambda takes, inline source included.

Inline source becomes an archive with one file, stored without compression and without times, so that equal source
gives equal bytes everywhere.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_EXTENSIONS: Final = {"nodejs": "js", "python": "py", "ruby": "rb"}
_BY_REFERENCE: Final = ("ImageUri", "S3Bucket", "S3Key", "S3ObjectVersion", "S3ObjectStorageMode")


def inline_file(runtime: str) -> str:
    """The file that inline source goes into; `InputError` for a runtime that has no source to inline."""
    for family, extension in _EXTENSIONS.items():
        if runtime.startswith(family):
            return f"index.{extension}"
    raise InputError(
        f"Code.ZipFile cannot be used with the runtime {runtime or '(none)'}",
        hint="Inline code works with Node.js, Python and Ruby; put other code into a bucket or an image.",
    )


def archive(source: str, runtime: str) -> bytes:
    """One file with this source, as a zip archive."""
    entry = zipfile.ZipInfo(inline_file(runtime), date_time=_EPOCH)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
        out.writestr(entry, source)
    return buffer.getvalue()


def code_params(code: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """`Code` as CreateFunction takes it inside, and UpdateFunctionCode beside the function's name."""
    params = {name: code[name] for name in _BY_REFERENCE if code.get(name)}
    if code.get("ZipFile"):
        params["ZipFile"] = archive(code["ZipFile"], runtime)
    if code.get("SourceKMSKeyArn"):
        params["SourceKMSKeyArn"] = code["SourceKMSKeyArn"]
    return params


def differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two sets of properties need another archive, image or instruction set."""
    if old.get("Code") != new.get("Code"):
        return True
    if (old.get("Architectures") or ["x86_64"]) != (new.get("Architectures") or ["x86_64"]):
        return True
    runtimes = [properties.get("Runtime") or "" for properties in (old, new)]
    is_inline = bool((new.get("Code") or {}).get("ZipFile"))
    return is_inline and inline_file(runtimes[0]) != inline_file(runtimes[1])
