"""How one stack's exports change the index of a region. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.model.exports import Export

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stackhold.model.exports import ExportsIndex
    from stackhold.model.ids import Region, StackName
    from stackhold.model.instant import Instant


def taken_exports(index: ExportsIndex, names: Iterable[str], *, stack: StackName, region: Region) -> dict[str, Export]:
    """Those of these names that the index lists for another producer.

    What cdkd lists of plain outputs is among them: it lists one value per name, whoever looks the name up.
    """
    listed = ((name, index.exports[name]) for name in names if name in index.exports)
    return {name: entry for name, entry in listed if not _is_of(entry, stack, region)}


def with_exports(
    index: ExportsIndex,
    exports: Mapping[str, object],
    *,
    outputs: Mapping[str, object],
    stack: StackName,
    region: Region,
    now: Instant,
    free: Collection[str] = (),
) -> ExportsIndex | None:
    """The index with exactly these entries of ours; None when it has them already.

    An entry of another producer is never touched, not even under a name that we export, but for the names in `free`,
    whose producers are no more. cdkd lists plain outputs in
    the index too: such an entry of ours stays, with the output's value, for as long as the stack has that output.
    """
    wanted: dict[str, Export] = {}
    for name, entry in index.exports.items():
        if not _is_of(entry, stack, region):
            if name not in exports or name not in free:
                wanted[name] = entry
        elif name in exports or name in outputs:
            wanted[name] = replace(entry, value=exports[name] if name in exports else outputs[name])
    for name, value in exports.items():
        wanted.setdefault(name, Export(value, stack, region))
    return None if wanted == index.exports else replace(index, exports=wanted, last_modified=now)


def _is_of(entry: Export, stack: StackName, region: Region) -> bool:
    return entry.producer_stack == stack and entry.producer_region == region
