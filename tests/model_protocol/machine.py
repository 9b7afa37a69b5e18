"""The protocol as a state machine that hypothesis plays: the same world, with hypothesis choosing what happens next.

It plays fewer steps than the seeded trials, but shrinks what it finds to the shortest story.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.model_protocol.client import CloudRequest
from tests.model_protocol.steps import Desired
from tests.model_protocol.store import Fate
from tests.model_protocol.world import Setting, World

from stackhold.model.instant import HOUR, MINUTE, SECOND
from stackhold.testing.turns import Carriers

if TYPE_CHECKING:
    from tests.model_protocol.writers import Host, Writer

TTL = 3 * MINUTE
hosts = st.integers(0, 2)
wanted = st.dictionaries(st.sampled_from(["R0", "R1", "R2"]), st.integers(0, 2), max_size=3)
spans = st.sampled_from([SECOND, 15 * SECOND, TTL // 2, TTL - 10 * SECOND, TTL + 10 * SECOND])


class ProtocolMachine(RuleBasedStateMachine):
    """Three hosts an hour apart, one stack, and everything that can go wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.carriers = Carriers()
        self.world: World | None = None

    @initialize(store_offset=st.sampled_from([0, HOUR, -HOUR]))
    def begin(self, store_offset: int) -> None:
        setting = Setting("machine", ttl_ms=TTL, store_offset=store_offset, pace_ms=MINUTE)
        self.world = World(setting, self.carriers, lands=lambda: True)
        self.world.begin_run(self.world.hosts[0], Desired({"R0": 0, "R1": 0}, MINUTE), wait_ms=5 * MINUTE)

    @rule(turns=st.lists(st.integers(0, 63), min_size=1, max_size=12))
    def go_on(self, turns: list[int]) -> None:
        """Some players go on, in this order; when nobody can, time passes until somebody can."""
        for turn in turns:
            if not self._turn(turn, Fate.DONE):
                return

    @rule(order=st.integers(0, 999), count=st.sampled_from([30, 100, 300]))
    def go_on_for_long(self, order: int, count: int) -> None:
        """Players go on in an order that is not worth shrinking."""
        dice = random.Random(order)
        for _ in range(count):
            if not self._turn(dice.randrange(64), Fate.DONE):
                return

    @rule(order=st.integers(0, 999), until=st.sampled_from([TTL * 5 // 6, TTL, TTL * 7 // 6]))
    def go_on_until(self, order: int, until: int) -> None:
        """Players go on for a part of the ttl."""
        dice, ends_at = random.Random(order), self._world.stage.now + until
        while self._world.stage.now < ends_at and self._turn(dice.randrange(64), Fate.DONE):
            pass

    @rule(turn=st.integers(0, 63), fate=st.sampled_from([fate for fate in Fate if fate is not Fate.ANSWER]))
    def go_wrong(self, turn: int, fate: Fate) -> None:
        """A request goes wrong."""
        self._turn(turn, fate)

    @rule(at=hosts, sizes=wanted, wait_ms=st.sampled_from([0, 5 * MINUTE]))
    def begin_run(self, at: int, sizes: dict[str, int], wait_ms: int) -> None:
        if len(self._world.runs) < 3:
            self._world.begin_run(self._host(at), Desired(sizes, MINUTE), wait_ms=wait_ms)

    @rule(ms=spans)
    def pass_time(self, ms: int) -> None:
        self._world.pass_time(ms)

    @rule(at=hosts, ms=spans)
    def freeze(self, at: int, ms: int) -> None:
        self._world.freeze(self._host(at), ms)

    @rule(at=hosts, ms=spans)
    def cut_off(self, at: int, ms: int) -> None:
        self._world.cut_off([self._host(at)], ms)

    @rule(at=hosts, ms=st.sampled_from([HOUR, -HOUR]))
    def set_wall(self, at: int, ms: int) -> None:
        self._world.set_wall(self._host(at), ms)

    @precondition(lambda self: self.world is not None and self.world.runs)
    @rule(which=st.integers(0, 2), is_signal=st.booleans())
    def end_run(self, which: int, is_signal: bool) -> None:
        runs: list[Writer] = list(self._world.runs)
        run = runs[which % len(runs)]
        if is_signal:
            self._world.stop(run)
        else:
            self._world.crash(run)

    @rule(at=hosts)
    def force_unlock(self, at: int) -> None:
        self._world.begin_unlock(self._host(at))

    @rule(at=hosts, sizes=wanted)
    def other_tool(self, at: int, sizes: dict[str, int]) -> None:
        self._world.begin_foreign(self._host(at), Desired(sizes, MINUTE))

    @precondition(lambda self: self.world is not None and self.world.depot.late)
    @rule(which=st.integers(0, 7))
    def land(self, which: int) -> None:
        self._world.land(which % len(self._world.depot.late))

    @precondition(lambda self: self.world is not None and self.world.late_calls())
    @rule(which=st.integers(0, 7))
    def land_call(self, which: int) -> None:
        late = self._world.late_calls()
        self._world.land_call(late[which % len(late)])

    @invariant()
    def nothing_is_broken(self) -> None:
        if self.world is not None:
            assert not self.world.referee.violations

    def teardown(self) -> None:
        if self.world is not None:
            self.world.close()
        self.carriers.close()

    @property
    def _world(self) -> World:
        assert self.world is not None
        return self.world

    def _host(self, at: int) -> Host:
        return self._world.hosts[at]

    def _turn(self, turn: int, fate: Fate) -> bool:
        world = self._world
        ready = world.ready()
        if not ready:
            later = [at for at in world.wakes() if at > world.stage.now]
            if not later:
                return False
            world.pass_time(min(later) - world.stage.now)
            return True
        player = ready[turn % len(ready)]
        request = player.request
        if request is None or request.is_answer:
            fate = Fate.DONE
        elif world.is_down(player):
            fate = Fate.UNREACHABLE
        elif isinstance(request, CloudRequest) and fate not in {Fate.REQUEST_LOST, Fate.ANSWER_LOST, Fate.LATE}:
            fate = Fate.DONE
        elif not isinstance(request, CloudRequest) and request.change is None and fate is not Fate.DONE:
            fate = Fate.UNREACHABLE
        world.go_on(player, fate)
        return True


def play(examples: int, *, is_repeatable: bool = True) -> None:
    """Let hypothesis play so many worlds; raises with the shortest story that breaks a promise."""
    run_state_machine_as_test(
        ProtocolMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            derandomize=is_repeatable,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
