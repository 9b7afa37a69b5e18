"""Documents as one YAML text, as `kubectl apply -f -` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.model.values import JsonMap


def manifest(documents: Iterable[JsonMap]) -> str:
    """The documents, one after another; the same documents always give the same text."""
    import yaml

    class _Plain(yaml.SafeDumper):
        """Writes a repeated part out again: the API server's tools know no references."""

        def ignore_aliases(self, data: object) -> bool:
            """Never refer."""
            return True

    return "".join(
        "---\n" + yaml.dump(dict(document), Dumper=_Plain, sort_keys=False, width=4096, allow_unicode=True)
        for document in documents
    )
