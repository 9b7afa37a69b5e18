"""The same story on both stores: state in a folder, and state in a bucket of the same emulator.

What a story looks at lies in the store under the keys that users know; it is read, put and dropped here directly,
past the product. `Line` is a stack whose deploys hang where the story wants them to.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.stories.scene import PATIENCE_SECONDS, Result, wait_until

from stackhold.testing.proxy import Answer, Call, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.stories.scene import Running, Scene

BUCKET = "stackhold-state"
STACK = "line"
SHORT = ("--lock-ttl", "8s", "--lock-renew", "1s")
"""A lock that is stale after 13 s of silence; a call may last a second, which a busy machine needs."""
SHORT_TTL_MS = 8_000
LINE = """
Parameters:
  Made: {Type: String, Default: one}
Resources:
  First:
    Type: AWS::SSM::Parameter
    Properties: {Name: !Sub "line-first-${Made}", Type: String, Value: !Ref Made}
  Second:
    Type: AWS::SSM::Parameter
    DependsOn: First
    Properties: {Name: !Sub "line-second-${Made}", Type: String, Value: !Ref Made}
"""
LINE_WITH_TABLE = (
    LINE
    + """
  Table:
    Type: AWS::DynamoDB::Table
    DependsOn: Second
    Properties:
      TableName: line-table
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      TimeToLiveSpecification: {AttributeName: gone, Enabled: true}
"""
)


@dataclass(frozen=True)
class Objects:
    """The objects of one stack in its store, whichever that is."""

    scene: Scene
    stack: str = STACK
    prefix: str = "stackhold"
    region: str = "us-east-1"

    @property
    def is_local(self) -> bool:
        """Whether they are files."""
        return self.scene.state.startswith("file:")

    def path(self, name: str) -> Path:
        """Where an object lies in a folder."""
        return Path(self.scene.state.removeprefix("file:")) / self._key(name)

    def read(self, name: str) -> bytes | None:
        """An object's bytes; None when there is none."""
        if self.is_local:
            path = self.path(name)
            return path.read_bytes() if path.exists() else None
        client = self.scene.client("s3")
        try:
            data: bytes = client.get_object(Bucket=BUCKET, Key=self._key(name))["Body"].read()
        except client.exceptions.NoSuchKey:
            return None
        return data

    def put(self, name: str, data: bytes) -> None:
        """Write an object whatever is there."""
        if self.is_local:
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(data)
        else:
            self.scene.client("s3").put_object(Bucket=BUCKET, Key=self._key(name), Body=data)

    def drop(self, name: str) -> None:
        """Delete an object whatever is there."""
        if self.is_local:
            self.path(name).unlink()
        else:
            self.scene.client("s3").delete_object(Bucket=BUCKET, Key=self._key(name))

    def json(self, name: str) -> dict[str, Any] | None:
        """An object as JSON; None when there is none."""
        data = self.read(name)
        return None if data is None else json.loads(data)

    def lock(self) -> dict[str, Any] | None:
        """The lock."""
        return self.json("lock.json")

    def held(self) -> dict[str, Any]:
        """The lock, which must be there."""
        lock = self.lock()
        assert lock is not None
        return lock

    def recorded(self) -> dict[str, str]:
        """Physical ids by logical id, as recorded."""
        record = self.json("state.json")
        return {} if record is None else {name: each["physicalId"] for name, each in record["resources"].items()}

    def runs(self) -> list[dict[str, Any]]:
        """The logs of all runs, oldest first."""
        found = []
        for name in self._names("events/"):
            log = self.json(name)
            if log is not None:
                found.append(log)
        return found

    def _names(self, below: str) -> list[str]:
        if self.is_local:
            return sorted(below + path.name for path in self.path(below).glob("*.json"))
        start = self._key("")
        pages = self.scene.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=start + below)
        return sorted(each["Key"].removeprefix(start) for each in pages.get("Contents", []))

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{self.stack}/{self.region}/{name}"


@dataclass
class Watched:
    """A command whose words are read while it runs."""

    running: Running
    _out: list[str] = field(default_factory=list)
    _err: list[str] = field(default_factory=list)
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        process = self.running.process
        for stream, lines in ((process.stdout, self._out), (process.stderr, self._err)):
            assert stream is not None
            reader = threading.Thread(target=_drain, args=(stream, lines), daemon=True)
            reader.start()
            self._readers.append(reader)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.running.process.pid

    @property
    def said(self) -> str:
        """All that it has written so far, on either stream."""
        return "".join([*self._out, *self._err])

    def wait_said(self, text: str) -> None:
        """Wait until it has written a text."""
        wait_until(lambda: text in self.said or self.running.process.poll() is not None, f"the words {text!r}")
        assert text in self.said, self.said

    def wait_caught(self, rule: Rule) -> None:
        """Wait until a rule of the proxy has caught a request of it."""
        wait_until(lambda: rule.reached.is_set() or self.running.process.poll() is not None, "a request to catch")
        assert rule.reached.is_set(), self.finish()

    def finish(self, timeout: float = PATIENCE_SECONDS) -> Result:
        """Wait for its end."""
        code = self.running.process.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        return Result(code, "".join(self._out), "".join(self._err))


@dataclass
class Line:
    """The stack `line` in a scene: two parameters in a row, its emulator behind a proxy where a story wants that."""

    scene: Scene
    proxy: SlowProxy
    objects: Objects

    def deploy(
        self, *flags: str, made: str = "one", by: SlowProxy | None = None, env: Mapping[str, str] | None = None
    ) -> Watched:
        """Start a deploy of `line.yaml`, through a proxy or straight to the emulator."""
        through = {"AWS_ENDPOINT_URL": by.url} if by is not None else {}
        return Watched(
            self.scene.start(
                "deploy", "line.yaml", "--parameter", f"Made={made}", *flags, env={**through, **(env or {})}
            )
        )

    def kill_at_second(self, *flags: str, by: SlowProxy | None = None) -> Watched:
        """A deploy that is killed when it wants to make its second parameter; nothing of that is carried out."""
        proxy = by or self.proxy
        started: list[Watched] = []

        def kill(_: Call) -> None:
            started[0].running.process.kill()

        rule = Rule(service="ssm", operation="PutParameter", skip=1, times=1, before=kill, drop="before")
        proxy.add(rule)
        started.append(self.deploy(*flags, by=proxy))
        ended = started[0].finish()
        assert ended.code == -9, ended
        proxy.remove(rule)
        return started[0]

    def pause(self, run: Watched) -> None:
        """Stop a process, but not in the middle of a write to a folder: what it locks there would stay locked."""

        def is_paused_between_writes() -> bool:
            run.running.signal(signal.SIGSTOP)
            if not any(_is_locked(lock) for lock in self.scene.folder.glob("state/**/.lock")):
                return True
            run.running.signal(signal.SIGCONT)
            return False

        wait_until(is_paused_between_writes, "a moment without a write")

    def hold(self) -> Rule:
        """Hold the second parameter's creation in the proxy until it is released."""
        return self.proxy.add(Rule(service="ssm", operation="PutParameter", skip=1, times=1, hold=threading.Event()))

    def hold_table(self) -> Rule:
        """Say that the table is still being made, for as long as the rule stands: no call is in flight for long."""
        body = json.dumps({"Table": {"TableName": "line-table", "TableStatus": "CREATING"}}).encode()
        content = ("Content-Type", "application/x-amz-json-1.0")
        self.scene.write("line.yaml", LINE_WITH_TABLE)
        return self.proxy.add(
            Rule(service="dynamodb", operation="DescribeTable", answer=Answer(200, body=body, headers=(content,)))
        )

    def in_cloud(self) -> set[str]:
        """The names of the stack's parameters that exist, asked directly."""
        found = self.scene.client("ssm").describe_parameters()["Parameters"]
        return {each["Name"] for each in found if each["Name"].startswith("line-")}

    def warm(self) -> None:
        """Let the emulator load its services, so that no short call budget is used up by that."""
        self.in_cloud()
        self.scene.client("dynamodb").list_tables()
        self.scene.client("sts").get_caller_identity()


@dataclass
class Landed:
    """A call that the emulator has carried out, its answer held back."""

    done: threading.Event = field(default_factory=threading.Event)
    _go_on: threading.Event = field(default_factory=threading.Event)

    def hold(self, _: Call) -> None:
        """To be a rule's `after`."""
        self.done.set()
        self._go_on.wait(PATIENCE_SECONDS)

    def wait(self, run: Watched) -> None:
        """Wait until it is carried out for a run."""
        wait_until(lambda: self.done.is_set() or run.running.process.poll() is not None, "a call to be carried out")
        assert self.done.is_set(), run.finish()

    def release(self) -> None:
        """Let the answer go."""
        self._go_on.set()


@contextlib.contextmanager
def line_in(scene: Scene) -> Iterator[Line]:
    """The template in the scene's folder, and a proxy before its emulator."""
    scene.write("line.yaml", LINE)
    with SlowProxy(scene.emulator.url) as proxy:
        yield Line(scene, proxy, Objects(scene))


def in_bucket(scene: Scene) -> Scene:
    """The same scene with its state in a bucket of the emulator."""
    scene.client("s3").create_bucket(Bucket=BUCKET)
    scene.state = f"s3://{BUCKET}"
    return scene


def owner_of(run: Watched) -> str:
    """A run as its lock names it."""
    return f"{getpass.getuser()}@{socket.gethostname()}:{run.pid}"


def wall_ms() -> int:
    """This host's time."""
    return time.time_ns() // 1_000_000


def _is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _drain(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line)  # seen by others line by line
