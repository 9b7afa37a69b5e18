"""How one stack's exports change the index of a region. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.model.exports import Export

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.exports import ExportsIndex
    from stackhold.model.ids import Region, StackName
    from stackhold.model.instant import Instant


def with_exports(
    index: ExportsIndex,
    exports: Mapping[str, object],
    *,
    outputs: Mapping[str, object],
    stack: StackName,
    region: Region,
    now: Instant,
) -> ExportsIndex | None:
    """The index with exactly these entries of ours; None when it has them already.

    An entry of another producer is never touched, not even under a name that we export. cdkd lists plain outputs in
    the index too: such an entry of ours stays, with the output's value, for as long as the stack has that output.
    """
    wanted: dict[str, Export] = {}
    for name, entry in index.exports.items():
        is_ours = entry.producer_stack == stack and entry.producer_region == region
        if not is_ours:
            wanted[name] = entry
        elif name in exports or name in outputs:
            wanted[name] = replace(entry, value=exports[name] if name in exports else outputs[name])
    for name, value in exports.items():
        wanted.setdefault(name, Export(value, stack, region))
    return None if wanted == index.exports else replace(index, exports=wanted, last_modified=now)
