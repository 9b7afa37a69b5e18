"""Threads that take turns: exactly one goes on at a time, and whoever holds the stage says which.

A `Stage` owns a simulated time and a set of players, each a real thread that stands still until it is given a turn.
A turn lasts until the player waits for something: a flag, a lock, time, or a request on its way. Nothing else runs
meanwhile, so the same choices always give the same story, and a million turns take seconds. Ending an owner's players
is a crash: `Ended` is raised in each of them wherever it stands.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any

from stackhold.model.instant import BootInstant, Instant
from stackhold.testing.clock import BOOT_START, START

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from stackhold.ports.clock import Clock
    from stackhold.ports.threads import Condition, Flag, Mutex, Started, Threads


class Ended(BaseException):
    """Raised in a player whose process is gone. Not an error, so that nothing but a `finally` gets in its way."""


class Player:
    """One thread that takes turns."""

    def __init__(self, stage: Stage, call: Callable[[], None], *, owner: object, name: str) -> None:
        self.owner = owner
        self.name = name
        self.error: BaseException | None = None
        """What its call raised."""
        self.is_done = False
        self.is_ended = False
        self.request: Any = None
        """What it has sent and waits for, if that is what it waits for. Such a player goes on when it is told to."""
        self._stage = stage
        self._call = call
        self._wakes_at: int | None = None
        self._when: Callable[[], bool] | None = None
        self._carrier: _Carrier | None = None

    def is_ready(self, now: int) -> bool:
        """Whether a turn would bring it further."""
        if self._when is not None and self._when():
            return True
        if self._wakes_at is not None:
            return self._wakes_at <= now
        return self._when is None

    @property
    def wakes_at(self) -> int | None:
        """When time alone makes it ready."""
        return self._wakes_at

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._stage.wait(lambda: self.is_done, seconds=timeout)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self.is_done

    def play(self) -> None:
        """Everything it does, in its carrier's thread."""
        try:
            if not self.is_ended:
                self._call()
        except Ended:
            pass
        except BaseException as error:
            self.error = error
        self.is_done = True


class _Carrier:
    """A real thread that carries one player after another."""

    def __init__(self, idle: list[_Carrier]) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.player: Player | None = None
        self.back: threading.Lock | None = None
        self._idle = idle
        threading.Thread(target=self._loop, name="stackhold-carrier", daemon=True).start()

    def _loop(self) -> None:
        while True:
            self.go.acquire()
            if self.player is None:
                return
            self.player.play()
            self.player = None
            self._idle.append(self)
            assert self.back is not None
            self.back.release()


class Carriers:
    """Real threads kept for one stage after another."""

    def __init__(self) -> None:
        self.idle: list[_Carrier] = []

    def take(self) -> _Carrier:
        """One that carries nobody."""
        return self.idle.pop() if self.idle else _Carrier(self.idle)

    def close(self) -> None:
        """End those that carry nobody."""
        while self.idle:
            self.idle.pop().go.release()


class Stage:
    """Where players take turns."""

    def __init__(self, carriers: Carriers, *, now: int = START) -> None:
        self.now = now
        """Simulated time in ms. Only whoever holds the stage moves it."""
        self.players: list[Player] = []
        self.current: Player | None = None
        self.fallen: list[Player] = []
        """Players whose call raised, other than by being ended."""
        self._carriers = carriers
        self._back = threading.Lock()
        self._back.acquire()

    def enter(self, call: Callable[[], None], *, owner: object, name: str) -> Player:
        """Add a player; it begins at its first turn."""
        if self.current is not None and self.current.is_ended:
            raise Ended
        player = Player(self, call, owner=owner, name=name)
        self.players.append(player)
        return player

    def turn(self, player: Player) -> None:
        """Let a player go on until it waits again."""
        carrier = player._carrier
        if carrier is None:
            carrier = player._carrier = self._carriers.take()
            carrier.player, carrier.back = player, self._back
        before, self.current = self.current, player
        player._when = player._wakes_at = None
        carrier.go.release()
        self._back.acquire()
        self.current = before
        if player.is_done:
            player._carrier = None
            self.players.remove(player)
            if player.error is not None:
                self.fallen.append(player)

    def end(self, owner: object) -> None:
        """Crash: every player of this owner stops where it stands."""
        while mine := [player for player in self.players if player.owner is owner]:
            for player in mine:
                player.is_ended = True
                self.turn(player)

    def close(self) -> None:
        """Crash everybody."""
        while self.players:
            self.end(self.players[0].owner)

    def next_wake(self) -> int | None:
        """The earliest time at which time alone makes somebody ready."""
        return min((player._wakes_at for player in self.players if player._wakes_at is not None), default=None)

    def wait(self, when: Callable[[], bool] | None = None, *, seconds: float | None = None) -> None:
        """For players: wait until something is so, or for so long. With neither: give the turn away once."""
        player = self.current
        assert player is not None, "only players wait"
        if player.is_ended:
            raise Ended
        if when is not None and when():
            return
        player._when = when
        player._wakes_at = None if seconds is None or seconds < 0 else self.now + round(seconds * 1000)
        self._hand_back(player)

    def send(self, request: object) -> None:
        """For players: put a request on its way, and wait until it is told to go on."""
        player = self.current
        assert player is not None, "only players send"
        if player.is_ended:
            raise Ended
        player.request = request
        player._when, player._wakes_at = None, None
        try:
            self._hand_back(player)
        finally:
            player.request = None

    def _hand_back(self, player: Player) -> None:
        carrier = player._carrier
        assert carrier is not None
        self._back.release()
        carrier.go.acquire()
        if player.is_ended:
            raise Ended


class TurnMutex:
    """A `Mutex` among players."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it."""
        if self._is_held and blocking:
            self._stage.wait(lambda: not self._is_held, seconds=timeout)
        if self._is_held:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        """Give it back."""
        self._is_held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class TurnFlag:
    """A `Flag` among players."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._is_set = False

    def set(self) -> None:
        """It has happened."""
        self._is_set = True

    def clear(self) -> None:
        """It has not."""
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it has."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has."""
        if not self._is_set:
            self._stage.wait(self.is_set, seconds=timeout)
        return self._is_set


class TurnCondition(TurnMutex):
    """A `Condition` among players."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._news = 0

    def wait(self, timeout: float | None = None) -> bool:
        """Let go until somebody notifies."""
        seen = self._news
        self.release()
        self._stage.wait(lambda: self._news != seen, seconds=timeout)
        self.acquire()
        return self._news != seen

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something is so."""
        ends_at = None if timeout is None else self._stage.now + round(timeout * 1000)
        while not predicate():
            left = None if ends_at is None else (ends_at - self._stage.now) / 1000
            if left is not None and left <= 0:
                return False
            self.wait(left)
        return True

    def notify_all(self) -> None:
        """Wake everybody."""
        self._news += 1


class TurnThreads:
    """`Threads` whose threads are players of one owner."""

    def __init__(self, stage: Stage, owner: object) -> None:
        self._stage = stage
        self._owner = owner

    def start(self, call: Callable[[], None], *, name: str) -> Started:
        """A new player."""
        return self._stage.enter(call, owner=self._owner, name=name)

    def lock(self) -> Mutex:
        """A lock."""
        return TurnMutex(self._stage)

    def event(self) -> Flag:
        """A flag."""
        return TurnFlag(self._stage)

    def condition(self) -> Condition:
        """A condition."""
        return TurnCondition(self._stage)


class TurnClock:
    """One machine's clocks, driven by the stage's time."""

    def __init__(self, stage: Stage, *, name: str, wall_offset: int = 0) -> None:
        """`name` makes boot id and nonces, which repeat from stage to stage; the wall clock is that much ahead."""
        self.wall_offset = wall_offset
        """Change it to set the wall clock."""
        self.slept_ms = 0
        """How long the machine has slept: the boot clock counts that too."""
        self._stage = stage
        self._name = name
        self._boots = 1
        self._boot_offset = BOOT_START - stage.now
        self._nonces = 0

    def now(self) -> Instant:
        """Wall time."""
        return Instant(self._stage.now + self.wall_offset)

    def boot(self) -> BootInstant:
        """The boot clock."""
        return BootInstant(self._stage.now + self._boot_offset)

    def awake(self) -> BootInstant:
        """The clock that stops while the machine sleeps: what a run must not count on."""
        return BootInstant(self.boot() - self.slept_ms)

    def boot_id(self) -> str:
        """The name of this boot."""
        return f"{self._name}-{self._boots}"

    def sleep(self, ms: int) -> None:
        """Wait for time to pass."""
        self._stage.wait(seconds=max(ms, 0) / 1000)

    def nonce(self) -> str:
        """32 hex characters, new each time."""
        self._nonces += 1
        return hashlib.sha256(f"{self._name}:{self._nonces}".encode()).hexdigest()[:32]

    def reboot(self) -> None:
        """Begin another boot. The owner's players must have been ended."""
        self._boots += 1
        self._boot_offset = 1_009 - self._stage.now


if TYPE_CHECKING:
    _: type[Clock] = TurnClock
    __: type[Threads] = TurnThreads
