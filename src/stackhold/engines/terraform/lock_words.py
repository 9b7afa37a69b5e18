"""How a state lock that is in the way is named for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.model.instant import date_time

if TYPE_CHECKING:
    from stackhold.engines.terraform.lock_info import LockInfo


def held_by(lock: LockInfo) -> str:
    """One line: whose lock it is, for what, since when."""
    since = f" since {date_time(lock.created)}" if lock.created is not None else ""
    doing = f" for {lock.operation}" if lock.operation else ""
    where = f", at {lock.path}" if lock.path else ""
    return f"the state lock {lock.id} is held by {lock.who or 'somebody who gave no name'}{doing}{since}{where}"
