"""The world of the model: a stack, its store, the cloud, hosts with their clocks, and everybody who writes.

The world offers moves; whoever plays (a seeded driver, or hypothesis) chooses among them. Runs are the product's own
guarded runs, in threads that take turns, so that what is tried here is the code that ships.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model_protocol.client import CloudClient, CloudRequest
from tests.model_protocol.cloud import Call, Cloud, Verb
from tests.model_protocol.engine import ModelEngine
from tests.model_protocol.foreign import ForeignTool
from tests.model_protocol.referee import Referee
from tests.model_protocol.store import Depot, Fate, ModelStore, Request
from tests.model_protocol.writers import Host, Role, Writer

from stackhold.decide.fence import margins
from stackhold.errors import StackholdError
from stackhold.model.events import EventKind
from stackhold.model.ids import Region, RunId, StackName
from stackhold.model.instant import MINUTE, SECOND, Millis, Span
from stackhold.model.run import RunIdentity, StopCause
from stackhold.ports.store import Stored, StoreFacts
from stackhold.runs.cancel import request_stop
from stackhold.runs.guard import FixedWait, GuardedRun, RetryWait, RunSettings, Stops
from stackhold.runs.layout import Keys
from stackhold.runs.unlock import force_unlock
from stackhold.testing.memory_store import MemoryStore
from stackhold.testing.reporter import RecordingReporter
from stackhold.testing.turns import Player, Stage, TurnClock, TurnThreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_protocol.steps import Desired

    from stackhold.ports.store import Store
    from stackhold.testing.turns import Carriers

KEYS = Keys("stackhold", StackName("Shop"), Region("eu-west-1"))


class QuietStops(Stops):
    """Stops without a mailbox: whoever plays calls `request`."""

    def listen(self) -> None:
        """No signals arrive here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What kind of world it is."""

    name: str
    """Makes every nonce; the same name gives the same world."""
    ttl_ms: int = 30 * MINUTE
    deadline_ms: int = 60 * MINUTE
    offsets: tuple[int, ...] = (0, 60 * MINUTE, -60 * MINUTE)
    """How far each host's wall clock is ahead."""
    store_offset: int = 0
    is_local: bool = False
    """A directory of one machine: one host, whose clocks are the store's."""
    pace_ms: int = 5 * SECOND


@dataclass(slots=True, eq=False)
class Acting:
    """A run at work."""

    writer: Writer
    stops: Stops


@dataclass(slots=True)
class World:
    """Everything there is."""

    setting: Setting
    carriers: Carriers
    inner: Store | None = None
    """The real store below; one in memory unless given."""
    freezes: Callable[[], bool] = lambda: False
    """Whether a call's sender is frozen between its check and sending."""
    lands: Callable[[], bool] = lambda: False
    """Whether a write that was on its way when its sender ended arrives later."""
    delay: Callable[[Request | CloudRequest], int] = lambda request: 0
    """How long a request, or an answer, is on its way."""
    stage: Stage = field(init=False)
    cloud: Cloud = field(init=False)
    referee: Referee = field(init=False)
    depot: Depot = field(init=False)
    hosts: list[Host] = field(init=False)
    runs: dict[Writer, Acting] = field(default_factory=dict)
    others: list[Writer] = field(default_factory=list)
    has_foreign: bool = False
    steps: int = 0
    count: int = 0
    story: list[str] = field(default_factory=list)
    """What happened, for whoever must understand a violation; empty unless kept."""
    keeps_story: bool = False

    def __post_init__(self) -> None:
        setting = self.setting
        self.stage = Stage(self.carriers)
        self.cloud = Cloud()
        self.referee = Referee(KEYS, self.cloud, setting.store_offset)
        offsets = setting.offsets[:1] if setting.is_local else setting.offsets
        self.hosts = [
            Host(f"host{index}", TurnClock(self.stage, name=f"{setting.name}-{index}", wall_offset=offset))
            for index, offset in enumerate(offsets)
        ]
        self.depot = Depot(
            stage=self.stage,
            inner=self.inner or MemoryStore(TurnClock(self.stage, name="store")),
            referee=self.referee,
            facts=StoreFacts("model:", is_local=setting.is_local),
            skew_ms=setting.store_offset,
            wall=self.hosts[0].clock.now if setting.is_local else None,
            whole_seconds=not setting.is_local,
        )

    # What may happen.

    def begin_run(self, host: Host, desired: Desired, *, wait_ms: int = 0, deadline_ms: int = 0) -> Writer:
        """A new run starts; it waits for the lock so long, or tries a few times."""
        writer = self._writer(host, Role.RUN, "run")
        setting = self.setting
        settings = RunSettings(
            deadline=Span(Millis(deadline_ms or setting.deadline_ms)),
            lock_wait=FixedWait(wait_ms) if wait_ms else RetryWait(),
            grace_ms=10 * MINUTE,
            ttl_ms=setting.ttl_ms,
            renew_every_ms=setting.ttl_ms // 15,
        )
        operation = "deploy" if desired.sizes else "destroy"
        identity = RunIdentity(
            RunId(writer.name), KEYS.stack, KEYS.region, operation, f"maria@{host.name}.test:{self.count}", "model", "0"
        )
        stops, reporter = QuietStops(), RecordingReporter()
        threads = TurnThreads(self.stage, writer)
        run = GuardedRun(
            store=ModelStore(self.depot, writer),
            prefix=KEYS.prefix,
            clock=host.clock,
            reporter=reporter,
            settings=settings,
            identity=identity,
            stops=stops,
            threads=threads,
        )
        engine = ModelEngine(desired, self._client(writer), threads)
        self.runs[writer] = Acting(writer, stops)
        self.stage.enter(lambda: self._play(writer, run, engine, reporter), owner=writer, name=writer.name)
        self.tell(f"{writer.name} begins on {host.name}: {operation} {dict(desired.sizes)}")
        return writer

    def begin_unlock(self, host: Host) -> None:
        """Somebody forces the lock."""
        writer = self._writer(host, Role.UNLOCKER, "unlock")
        store = ModelStore(self.depot, writer)

        def unlock() -> None:
            with contextlib.suppress(StackholdError):
                force_unlock(store, host.clock, KEYS, confirm=lambda *_: True)

        self._enter_other(writer, unlock)

    def edit(self, host: Host, name: str) -> None:
        """Somebody puts a resource into the record by hand, whoever holds the lock."""
        self.has_foreign = True
        writer = self._writer(host, Role.FOREIGN, "hand")
        found = self.depot.inner.read(KEYS.record)
        if isinstance(found, Stored):
            self.tell(f"{writer.name} adds {name} to the record")
            call = Call(Verb.CREATE, f"{name}-{writer.name}", writer, self.stage.now, 0, 0)
            self.cloud.apply(call)
            document = json.loads(found.data)
            document["resources"][name] = {
                "physicalId": call.name,
                "resourceType": "Model::Thing",
                "properties": {"size": 0},
                "attributes": {},
            }
            self.depot.force(writer, KEYS.record, json.dumps(document).encode())

    def begin_cancel(self, host: Host) -> None:
        """Somebody asks the holder to stop."""
        writer = self._writer(host, Role.CANCELLER, "cancel")
        store = ModelStore(self.depot, writer)

        def cancel() -> None:
            with contextlib.suppress(StackholdError):
                request_stop(
                    store, host.clock, KEYS, requested_by=writer.name, unlock_command=RunSettings().unlock_command
                )

        self._enter_other(writer, cancel)

    def begin_foreign(self, host: Host, desired: Desired) -> None:
        """Another tool deploys the same stack."""
        self.has_foreign = True
        writer = self._writer(host, Role.FOREIGN, "foreign")
        tool = ForeignTool(
            depot=self.depot,
            store=ModelStore(self.depot, writer),
            writer=writer,
            keys=KEYS,
            client=self._client(writer),
            sizes=desired.sizes,
        )
        self._enter_other(writer, tool.deploy)

    def go_on(self, player: Player, fate: Fate = Fate.DONE) -> None:
        """Give a player a turn; a request that it has sent meets its fate."""
        request = player.request
        if request is not None:
            self.steps += 1
            if not request.is_answer:
                request.fate = fate
            if self.keeps_story:
                self.tell(_described(request))
        self.stage.turn(player)
        if player.request is not None:
            player.request.arrives_at = self.stage.now + self.delay(player.request)
        for fallen in self.stage.fallen:
            self.referee.complain(f"{fallen.name} of {_name(fallen.owner)} broke: {fallen.error!r}")
        self.stage.fallen.clear()
        owner = player.owner
        if player.is_done and isinstance(owner, Writer) and not owner.is_alive:
            self._leave(owner)

    def pass_time(self, ms: int) -> None:
        """Time passes for everybody."""
        self.steps += 1
        self.stage.now += ms
        self.tell(f"{ms} ms pass")

    def freeze(self, host: Host, ms: int) -> None:
        """A host stands still for a while."""
        self.steps += 1
        host.clock.slept_ms += max(0, self.stage.now + ms - max(host.frozen_until, self.stage.now))
        host.frozen_until = max(host.frozen_until, self.stage.now + ms)
        self.tell(f"{host.name} is frozen for {ms} ms")

    def cut_off(self, hosts: list[Host], ms: int) -> None:
        """Hosts reach no store for a while."""
        self.steps += 1
        for host in hosts:
            host.cut_off_until = self.stage.now + ms
        self.tell(f"{', '.join(host.name for host in hosts)} cut off for {ms} ms")

    def set_wall(self, host: Host, ms: int) -> None:
        """Somebody sets a host's wall clock."""
        self.steps += 1
        host.clock.wall_offset += ms
        self.referee.is_time_steady = self.referee.is_time_steady and not self.setting.is_local
        self.tell(f"{host.name}'s wall clock moves by {ms} ms")

    def crash(self, writer: Writer) -> None:
        """A process is gone; what it had sent may still arrive."""
        self.steps += 1
        self.tell(f"{writer.name} is killed")
        self._leave(writer)
        self._gone(writer, "killed")

    def _leave(self, writer: Writer) -> None:
        for player in self.stage.players:
            request = player.request
            is_on_its_way = player.owner is writer and isinstance(request, Request) and not request.is_answer
            if is_on_its_way and request.change is not None and self.lands():
                self.depot.late.append(request.change)
        self.stage.end(writer)

    def reboot(self, host: Host) -> None:
        """A machine starts anew."""
        self.tell(f"{host.name} reboots")
        for writer in [*self.runs, *self.others]:
            if writer.host is host:
                self.crash(writer)
        host.clock.reboot()

    def stop(self, writer: Writer, cause: StopCause = StopCause.SIGTERM) -> None:
        """A first signal."""
        self.steps += 1
        self.tell(f"{writer.name} gets {cause.value}")
        self.runs[writer].stops.request(cause)

    def land(self, index: int) -> None:
        """A late write arrives."""
        self.steps += 1
        change = self.depot.late[index]
        self.tell(f"a late {'write' if change.data is not None else 'delete'} of {change.writer.name} to {change.key}")
        self.depot.land(index)

    def land_call(self, index: int) -> None:
        """A late call arrives, or is too late for ever."""
        self.steps += 1
        call = self.cloud.flying.pop(index)
        if self.stage.now - call.started_at <= call.latest_ms:
            self.tell(f"a late call of {call.sender.name}: {call.verb.value} {call.name}")
            self.cloud.apply(call)

    # What there is to choose from.

    def ready(self) -> list[Player]:
        """Players that may go on now."""
        now = self.stage.now
        return [
            player
            for player in self.stage.players
            if player.owner.host.frozen_until <= now and _may_go_on(player, now)  # type: ignore[attr-defined]  # owners are writers
        ]

    def wakes(self) -> list[int]:
        """When time alone lets somebody go on."""
        players = self.stage.players
        wakes = [player.wakes_at for player in players if player.wakes_at is not None]
        wakes += [player.request.arrives_at for player in players if player.request is not None]
        return wakes + [host.frozen_until for host in self.hosts]

    def late_calls(self) -> list[int]:
        """Calls that nobody waits for any more."""
        waiting = {
            id(player.request.call)
            for player in self.stage.players
            if isinstance(player.request, CloudRequest) and not player.request.is_answer
        }
        return [index for index, call in enumerate(self.cloud.flying) if id(call) not in waiting]

    def is_down(self, player: Player) -> bool:
        """Whether a request cannot reach the store now."""
        request = player.request
        if not isinstance(request, Request) or request.is_answer:
            return False
        return request.writer.host.cut_off_until > self.stage.now

    @property
    def is_troubled(self) -> bool:
        """Whether something took part that takes promises back: another tool, a frozen sender, a directory's clock."""
        return self.has_foreign or self.cloud.has_frozen or not self.referee.is_time_steady

    def tell(self, text: str) -> None:
        """Keep a line of the story."""
        if self.keeps_story:
            self.story.append(f"{self.stage.now - 1_710_835_200_000:>9} {text}")

    def close(self) -> None:
        """End everybody."""
        self.stage.close()

    def _client(self, writer: Writer) -> CloudClient:
        ttl = self.setting.ttl_ms
        margins(ttl)
        return CloudClient(
            stage=self.stage,
            cloud=self.cloud,
            referee=self.referee,
            writer=writer,
            budget_ms=min(240 * SECOND, ttl * 2 // 15),
            latest_ms=min(5 * MINUTE, ttl // 6),
            freezes=self.freezes,
        )

    def _writer(self, host: Host, role: Role, kind: str) -> Writer:
        self.steps += 1
        self.count += 1
        return Writer(f"{kind}-{self.count:03d}", host, role)

    def _enter_other(self, writer: Writer, call: Callable[[], None]) -> None:
        self.others.append(writer)
        self.tell(f"{writer.name} begins on {writer.host.name}")

        def play() -> None:
            call()
            self.others.remove(writer)

        self.stage.enter(play, owner=writer, name=writer.name)

    def _play(self, writer: Writer, run: GuardedRun, engine: ModelEngine, reporter: RecordingReporter) -> None:
        """A whole run: it ends with a report, or with an error that says why."""
        try:
            report = run.run(engine)
            ending = f"{report.outcome.value}: {report.error}"
        except StackholdError as error:
            ending = f"{type(error).__name__}: {error.message} {error.hint}"
        ending = " | ".join((ending, *(event.message for event in reporter.of(EventKind.WARNING))))
        self._gone(writer, ending)
        if "the lock was not released" not in ending and "The lock may be ours" not in ending:
            self.referee.ended(writer)

    def _gone(self, writer: Writer, ending: str) -> None:
        writer.is_alive, writer.ending = False, ending
        self.runs.pop(writer, None)
        if writer in self.others:
            self.others.remove(writer)
        self.tell(f"{writer.name} ended: {ending}")


def _may_go_on(player: Player, now: int) -> bool:
    return player.is_ready(now) if player.request is None else player.request.arrives_at <= now


def _name(owner: object) -> str:
    return owner.name if isinstance(owner, Writer) else str(owner)


def _described(request: Request | CloudRequest) -> str:
    what = "answer to " if request.is_answer else ""
    if isinstance(request, CloudRequest):
        return f"{request.writer.name}: {what}{request.call.verb.value} {request.call.name}: {request.fate.value}"
    key = request.key.removeprefix(KEYS.root)
    return f"{request.writer.name}: {what}{request.method} {key}: {request.fate.value}"
