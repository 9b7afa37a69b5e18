"""One trial: a world, a seed, and a driver that chooses among what may happen; then everything calms down.

A seed gives the same trial always. After the wild part all faults end, everybody finishes, late requests land, locks
grow old, and one more run must bring the stack where its template wants it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model_protocol.client import CloudRequest
from tests.model_protocol.cloud import Verb
from tests.model_protocol.steps import Desired
from tests.model_protocol.store import Fate, Request
from tests.model_protocol.world import Setting, World

from stackhold.model.instant import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_protocol.writers import Host

    from stackhold.ports.store import Store
    from stackhold.testing.turns import Carriers, Player

_MOST_TURNS = 60_000
_WRITE_FATES = (
    (Fate.REQUEST_LOST, 3),
    (Fate.ANSWER_LOST, 3),
    (Fate.LATE, 3),
    (Fate.TWICE, 1),
    (Fate.MET_ITSELF, 2),
    (Fate.BUSY, 1),
    (Fate.UNREACHABLE, 2),
    (Fate.REFUSED, 1),
)
_CALL_FATES = ((Fate.REQUEST_LOST, 2), (Fate.ANSWER_LOST, 3), (Fate.LATE, 3))


class Violated(Exception):
    """A promise was broken."""


@dataclass(slots=True)
class Trial:
    """Plays one seed."""

    seed: int
    carriers: Carriers
    wild_steps: int = 500
    inner: Store | None = None
    keeps_story: bool = False
    has_late: bool = True
    dice: random.Random = field(init=False)
    world: World = field(init=False)
    fault_rate: float = field(init=False)
    slow_rate: float = field(init=False)
    slow_calls: float = field(init=False)
    is_siege: bool = field(init=False)
    """Whether holders at long work are cut off or frozen for about a ttl, while others wait for their lock."""
    _odds: list[tuple[Callable[[], None], float]] = field(init=False)

    def __post_init__(self) -> None:
        self.dice = dice = random.Random(self.seed)
        self.is_siege = dice.random() < 0.3
        setting = Setting(
            name=f"trial-{self.seed}",
            ttl_ms=3 * MINUTE if self.is_siege else dice.choice((30 * MINUTE, 3 * MINUTE)),
            deadline_ms=dice.choice((HOUR, 3 * HOUR, 10 * MINUTE)),
            offsets=dice.choice(((0, HOUR, -HOUR), (0, 0, 0), (HOUR, -HOUR, HOUR))),
            store_offset=dice.choice((0, 0, 7 * SECOND, -HOUR)),
            is_local=dice.random() < 0.2,
            pace_ms=3 * MINUTE if self.is_siege else dice.choice((SECOND, 20 * SECOND, 3 * MINUTE)),
        )
        self.fault_rate = dice.choice((0.0, 0.03, 0.1))
        self.slow_rate = 0.03 if self.is_siege else dice.choice((0.0, 0.02, 0.08))
        self.slow_calls = 0.6 if self.is_siege else self.slow_rate
        freeze_rate = dice.choice((0.0, 0.0, 0.05))
        self.world = World(
            setting,
            self.carriers,
            inner=self.inner,
            freezes=lambda: dice.random() < freeze_rate,
            lands=lambda: self.has_late and dice.random() < 0.5,
            delay=self._delay,
            keeps_story=self.keeps_story,
        )
        self._odds = self._chosen_odds()

    def run(self) -> int:
        """Play it all; the steps taken. Raises `Violated`."""
        try:
            self._begin_run()
            while self.world.steps < self.wild_steps * (1 + self.is_siege):
                self._move()
            self._calm_down()
            return self.world.steps
        finally:
            self.world.close()

    def _chosen_odds(self) -> list[tuple[Callable[[], None], float]]:
        """How often what happens, chosen anew for each trial: some worlds know no crash, some no other tool."""
        dice = self.dice

        def sometimes(rate: float) -> float:
            return rate * dice.choice((0, 1, 1, 3)) * (0.2 if self.is_siege else 1)

        return [
            (self._pass_time, 0.03),
            (self._begin_run, 0.008),
            (self._crash, sometimes(0.0015)),
            (self._freeze, sometimes(0.002)),
            (self._cut_off, sometimes(0.002)),
            (self._force_unlock, sometimes(0.002)),
            (self._cancel, sometimes(0.001)),
            (self._foreign, dice.choice((0, 0, 0.004)) * (not self.world.setting.is_local)),
            (self._besiege, 0.006 if self.is_siege else 0),
            (self._land, 0.02),
            (self._land_call, dice.choice((0.03, 0.005))),
            (self._strike_create, sometimes(0.002)),
            (self._edit, dice.choice((0, 0, 0.003))),
            (self._stop, sometimes(0.001)),
            (self._set_wall, sometimes(0.002)),
            (self._reboot, 0.0007 if self.world.setting.is_local else 0),
        ]

    def _move(self) -> None:
        at = self.dice.random()
        for move, odds in self._odds:
            at -= odds
            if at < 0:
                move()
                break
        else:
            self._go_on()
        self._look()

    def _look(self) -> None:
        if self.world.referee.violations:
            raise Violated(self.world.referee.violations[0])

    def _go_on(self) -> None:
        world = self.world
        ready = world.ready()
        if not ready:
            self._wake()
            return
        player = self.dice.choice(ready)
        world.go_on(player, self._fate(player))

    def _fate(self, player: Player) -> Fate:
        request = player.request
        if request is None or request.is_answer:
            return Fate.DONE
        if self.world.is_down(player):
            return Fate.REQUEST_LOST if request.method != "read" and self.dice.random() < 0.1 else Fate.UNREACHABLE
        if self.dice.random() >= self.fault_rate:
            return Fate.DONE
        if isinstance(request, CloudRequest):
            fate = self._one_of(_CALL_FATES)
            return Fate.ANSWER_LOST if fate is Fate.LATE and not self.has_late else fate
        assert isinstance(request, Request)
        if request.change is None:
            return self.dice.choice((Fate.UNREACHABLE, Fate.UNREACHABLE, Fate.ANSWER_LOST, Fate.REFUSED))
        fate = self._one_of(_WRITE_FATES)
        return Fate.ANSWER_LOST if fate in {Fate.LATE, Fate.TWICE} and not self.has_late else fate

    def _one_of(self, fates: tuple[tuple[Fate, int], ...]) -> Fate:
        return self.dice.choices([fate for fate, _ in fates], [weight for _, weight in fates])[0]

    def _wake(self) -> None:
        """Nobody can go on: move to when somebody can."""
        world = self.world
        later = [at for at in world.wakes() if at > world.stage.now]
        if later:
            ttl = world.setting.ttl_ms
            spans = (500, ttl // 60) if self.is_siege else (500, 3 * SECOND, ttl // 60, ttl // 6)
            over = self.dice.randrange(self.dice.choice(spans))
            world.pass_time(min(later) - world.stage.now + over)
        else:
            self._pass_time()
        if not any(run.host.frozen_until <= world.stage.now for run in world.runs):
            self._begin_run()

    def _pass_time(self) -> None:
        dice = self.dice
        longest = dice.choices((SECOND, 20 * SECOND, 3 * MINUTE, 40 * MINUTE), (60, 30, 9, 1))[0]
        self.world.pass_time(dice.randrange(1, longest))

    def _begin_run(self) -> None:
        world, dice = self.world, self.dice
        host = dice.choice(world.hosts)
        is_up = max(host.frozen_until, host.cut_off_until) <= world.stage.now
        if len(world.runs) < 3 and (is_up or dice.random() < 0.05):
            wait_ms = dice.choice((0, 0, MINUTE, 5 * MINUTE))
            world.begin_run(host, self._desired(), wait_ms=wait_ms, deadline_ms=self._deadline())

    def _deadline(self) -> int:
        return self.dice.choice((0, 0, 0, 6 * MINUTE))

    def _desired(self) -> Desired:
        dice = self.dice
        if dice.random() < 0.15:
            return Desired({}, self.world.setting.pace_ms)
        fewest = 4 if self.is_siege else 1
        names = dice.sample([f"R{index}" for index in range(6)], dice.randrange(fewest, 7))
        return Desired({name: dice.randrange(3) for name in sorted(names)}, self.world.setting.pace_ms)

    def _crash(self) -> None:
        alive = [*self.world.runs, *self.world.others]
        if alive:
            self.world.crash(self.dice.choice(alive))

    def _freeze(self) -> None:
        self.world.freeze(self.dice.choice(self.world.hosts), self._long())

    def _cut_off(self) -> None:
        hosts = self.world.hosts
        self.world.cut_off(hosts if self.dice.random() < 0.3 else [self.dice.choice(hosts)], self._long())

    def _strike_create(self) -> None:
        """A run is killed while a create of it is on its way, its lock is forced, and the next wants something else."""
        world, dice = self.world, self.dice
        calls = [call for call in world.cloud.flying if call.verb is Verb.CREATE and call.sender in world.runs]
        if not calls:
            return
        call = dice.choice(calls)
        world.crash(call.sender)
        world.begin_unlock(dice.choice(world.hosts))
        wanted = self._desired()
        other = {name: size for name, size in wanted.sizes.items() if not call.name.startswith(f"{name}-")}
        world.begin_run(dice.choice(world.hosts), Desired(other, wanted.pace_ms), wait_ms=MINUTE, deadline_ms=HOUR)

    def _besiege(self) -> None:
        world = self.world
        lock = world.referee.lock
        holders = [run for run in world.runs if run.has_listed and lock is not None and lock.get("id") == run.lock_id]
        if holders:
            self._strike(holders[0].host)

    def _strike(self, host: Host) -> None:
        """A holder's host loses the store, or stands still, while somebody else waits for the lock."""
        world, dice, ttl = self.world, self.dice, self.world.setting.ttl_ms
        span = dice.randrange(ttl * 4 // 5, ttl * 3 // 2)
        if dice.random() < 0.3:
            world.freeze(host, span)
        else:
            world.cut_off([host], span)
        others = [other for other in world.hosts if other is not host]
        if len(world.runs) < 3 and others:
            world.begin_run(dice.choice(others), self._desired(), wait_ms=5 * MINUTE, deadline_ms=HOUR)

    def _long(self) -> int:
        ttl = self.world.setting.ttl_ms
        return self.dice.choice((self.dice.randrange(1, ttl // 4), self.dice.randrange(ttl * 3 // 4, ttl * 5 // 4)))

    def _delay(self, request: Request | CloudRequest) -> int:
        """Most requests take no time; some a while, a few very long. In a siege calls are slow, the store is not."""
        dice, ttl = self.dice, self.world.setting.ttl_ms
        if self.is_siege and self.slow_calls and isinstance(request, Request) and self._is_renewed_by(request):
            if dice.random() < 0.1:
                self._strike(request.writer.host)
                return dice.randrange(ttl // 6, ttl // 3)
            return 0
        is_call, at = isinstance(request, CloudRequest), dice.random()
        rate = self.slow_calls if is_call else self.slow_rate
        if at >= rate:
            return 0
        if is_call and self.is_siege:
            return dice.randrange(ttl // 30, ttl // 7)
        return dice.randrange(ttl // 3 if at < rate / 6 else ttl // 7)

    def _is_renewed_by(self, request: Request) -> bool:
        """Whether this is the answer to a holder's renewal."""
        is_lock = request.is_answer and request.method == "write" and request.key == self.world.referee.keys.lock
        return is_lock and request.writer.has_listed

    def _force_unlock(self) -> None:
        self.world.begin_unlock(self.dice.choice(self.world.hosts))

    def _cancel(self) -> None:
        self.world.begin_cancel(self.dice.choice(self.world.hosts))

    def _foreign(self) -> None:
        if not any(writer.is_foreign for writer in self.world.others):
            self.world.begin_foreign(self.dice.choice(self.world.hosts), self._desired())

    def _edit(self) -> None:
        self.world.edit(self.dice.choice(self.world.hosts), self.dice.choice(("R0", "R3", "H1", "H2")))

    def _land(self) -> None:
        if self.world.depot.late:
            self.world.land(self.dice.randrange(len(self.world.depot.late)))

    def _land_call(self) -> None:
        if late := self.world.late_calls():
            self.world.land_call(self.dice.choice(late))

    def _stop(self) -> None:
        if self.world.runs:
            self.world.stop(self.dice.choice(list(self.world.runs)))

    def _set_wall(self) -> None:
        self.world.set_wall(self.dice.choice(self.world.hosts), self.dice.choice((-HOUR, HOUR, -MINUTE, 10 * SECOND)))

    def _reboot(self) -> None:
        self.world.reboot(self.world.hosts[0])

    def _calm_down(self) -> None:
        world = self.world
        self.fault_rate = self.slow_rate = self.slow_calls = 0
        world.freezes = lambda: False
        for host in world.hosts:
            host.frozen_until = host.cut_off_until = 0
        self._finish()
        self._land_all()
        world.pass_time(4 * HOUR)
        for sizes in ({"R0": 1, "R1": 1, "R2": 1}, {"R0": 2, "R1": 2, "R3": 1}, {"R0": 2, "R1": 2, "R3": 1}):
            run = world.begin_run(world.hosts[0], Desired(sizes, SECOND))
            self._finish()
            self._land_all()
            world.pass_time(4 * HOUR)
        world.referee.settled()
        if not world.is_troubled:
            world.referee.converged(run)
        self._look()

    def _land_all(self) -> None:
        world = self.world
        while world.depot.late or world.cloud.flying:
            if world.depot.late and (not world.cloud.flying or self.dice.random() < 0.5):
                world.land(self.dice.randrange(len(world.depot.late)))
            else:
                world.land_call(self.dice.randrange(len(world.cloud.flying)))
            self._look()

    def _finish(self) -> None:
        """Everybody comes to an end."""
        for _ in range(_MOST_TURNS):
            if not self.world.stage.players:
                return
            self._go_on()
            self._look()
        names = ", ".join(sorted({f"{player.owner.name}/{player.name}" for player in self.world.stage.players}))  # type: ignore[attr-defined]  # owners are writers
        raise Violated(f"no end: {names}")
