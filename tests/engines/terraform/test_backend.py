"""The backend over real HTTP: whose requests it takes, what it answers, and that an answer is a confirmed write."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.engines.terraform.states import state

from stackhold.engines.terraform import backend as backend_module
from stackhold.engines.terraform.backend import BackendServer
from stackhold.engines.terraform.state_keeper import StateKeeper
from stackhold.model.run import StopCause
from stackhold.runs.state_versions import StoreStateVersions
from stackhold.testing.clock import FakeClock
from stackhold.testing.memory_store import Fault, MemoryStore
from stackhold.testing.run_scene import KEYS, until
from stackhold.testing.scripted_run import ScriptedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackhold.model.record import RecordChange

MINE = {"ID": "11111111-aaaa", "Operation": "OperationTypeApply", "Who": "ada@laptop", "Info": "", "Path": ""}
THEIRS = {**MINE, "ID": "22222222-bbbb", "Who": "eve@elsewhere"}


class Client:
    """The runtime's side."""

    def __init__(self, server: BackendServer) -> None:
        self.settings = server.env()
        self.url = urlsplit(self.settings["TF_HTTP_ADDRESS"])

    def ask(
        self,
        method: str,
        body: bytes | None = None,
        *,
        path: str | None = None,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        password: str | None = None,
        chunked: bool = False,
    ) -> tuple[int, bytes]:
        given = f"{self.settings['TF_HTTP_USERNAME']}:{password or self.settings['TF_HTTP_PASSWORD']}"
        sent = {"Authorization": "Basic " + base64.b64encode(given.encode()).decode(), **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.url.port or 0, timeout=10)
        try:
            connection.request(method, (path or self.url.path) + query, body, sent, encode_chunked=chunked)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def lock(self, who: Mapping[str, str] = MINE) -> tuple[int, bytes]:
        return self.ask("LOCK", json.dumps(who).encode())

    def unlock(self, who: Mapping[str, str] = MINE) -> tuple[int, bytes]:
        return self.ask("UNLOCK", json.dumps(who).encode())

    def read(self) -> tuple[int, bytes]:
        return self.ask("GET")

    def write(self, data: bytes, *, lock_id: str = MINE["ID"]) -> int:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        headers = {"Content-Type": "application/json", "Content-MD5": digest}
        return self.ask("POST", data, query=f"?ID={lock_id}", headers=headers)[0]


class Stage:
    """A run, its store, and the server beside it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.run = ScriptedRun(self.clock)
        self.versions = StoreStateVersions(self.store, KEYS, self.clock)

    @contextmanager
    def serving(self) -> Iterator[tuple[BackendServer, Client]]:
        with BackendServer(StateKeeper(self.versions, self.run.record, self.run), self.clock) as server:
            yield server, Client(server)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_state_is_read_as_it_was_written(stage: Stage) -> None:
    with stage.serving() as (_, client):
        assert client.read() == (204, b"")
        assert client.lock()[0] == 200
        assert client.write(state(1, "a")) == 200
        assert client.read() == (200, state(1, "a"))
        assert client.unlock()[0] == 200
    with stage.serving() as (_, client):
        assert client.read() == (200, state(1, "a"))


def test_only_who_knows_path_and_password_is_answered(stage: Stage) -> None:
    with stage.serving() as (server, client):
        assert client.ask("GET", path="/")[0] == 404
        assert client.ask("GET", path="/" + "0" * 32)[0] == 404
        assert client.ask("GET", password="wrong")[0] == 401
        assert client.ask("GET", headers={"Authorization": "Bearer x"})[0] == 401
        assert client.url.hostname == "127.0.0.1"
        assert set(server.secrets) == {client.settings["TF_HTTP_PASSWORD"], client.url.path[1:]}
    assert stage.store.calls == []


def test_path_and_password_are_others_each_time(stage: Stage) -> None:
    seen: set[str] = set()
    for _ in range(3):
        with stage.serving() as (server, _):
            seen.update(server.secrets)
    assert len(seen) == 6


@pytest.mark.parametrize("method", ["DELETE", "PUT", "HEAD"])
def test_nothing_is_deleted_and_there_are_no_workspaces(stage: Stage, method: str) -> None:
    with stage.serving() as (_, client):
        assert client.ask(method)[0] == 405
        assert client.ask("PATCH")[0] == 501


def test_a_held_lock_is_shown_in_its_holder_s_words(stage: Stage) -> None:
    with stage.serving() as (server, client):
        assert client.lock(THEIRS)[0] == 200
        status, body = client.lock(MINE)
        assert (status, json.loads(body)) == (423, THEIRS)
        assert server.held is not None
        assert server.held.id == THEIRS["ID"]


def test_lock_and_unlock_come_again_when_their_answers_were_lost(stage: Stage) -> None:
    with stage.serving() as (_, client):
        assert [client.lock()[0] for _ in range(2)] == [200, 200]
        assert [client.unlock()[0] for _ in range(2)] == [200, 200]


def test_a_lock_is_given_back_only_by_the_one_who_names_it(stage: Stage) -> None:
    with stage.serving() as (server, client):
        client.lock(THEIRS)
        assert client.unlock(MINE)[0] == 409
        assert client.ask("UNLOCK")[0] == 409
        assert client.ask("UNLOCK", b"no json")[0] == 409
        assert server.held is not None
        server.forget_lock()
        assert client.ask("UNLOCK")[0] == 200
        assert client.ask("UNLOCK", b"", headers={"Transfer-Encoding": "chunked"}, chunked=True)[0] == 200
        assert client.lock(MINE)[0] == 200


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"ID": ""}', b'{"ID": 5}', b"\xff", b"[" * 60_000])
def test_a_lock_without_a_name_is_refused(stage: Stage, body: bytes) -> None:
    with stage.serving() as (server, client):
        assert client.ask("LOCK", body)[0] == 400
        assert server.held is None


def test_a_write_needs_the_lock(stage: Stage) -> None:
    with stage.serving() as (server, client):
        assert client.write(state(1)) == 409
        client.lock(THEIRS)
        assert client.write(state(1)) == 409
        assert client.ask("POST", state(1))[0] == 409
        assert client.write(state(1), lock_id=THEIRS["ID"]) == 200
        assert len(server.refusals) == 3
    assert len(stage.versions.list()) == 1


def test_a_write_that_comes_again_makes_no_second_version(stage: Stage) -> None:
    with stage.serving() as (_, client):
        client.lock()
        assert [client.write(state(1)) for _ in range(3)] == [200, 200, 200]
    assert len(stage.versions.list()) == 1


@pytest.mark.parametrize("cause", [StopCause.LOCK_LOST, StopCause.FOREIGN_WRITE])
def test_a_stale_writer_is_answered_409_and_never_so_that_it_tries_again(stage: Stage, cause: StopCause) -> None:
    with stage.serving() as (server, client):
        client.lock()
        assert client.write(state(1)) == 200
        stage.run.stop(cause)
        assert client.write(state(2)) == 409
        assert client.read() == (200, state(1))
        assert "not this run's to write" in server.refusals[-1]


def test_a_store_that_says_no_is_an_outage_to_the_runtime(stage: Stage) -> None:
    with stage.serving() as (server, client):
        client.lock()
        stage.store.plan(lambda _: Fault.REFUSE)
        assert client.write(state(1)) == 503
        stage.store.plan([])
        assert client.write(state(1)) == 200
        assert "denies access" in server.refusals[-1]


def test_a_state_that_cannot_be_read_is_not_an_empty_one(stage: Stage) -> None:
    with stage.serving() as (_, client):
        client.lock()
        client.write(state(1))
        stage.store.plan([Fault.UNREACHABLE])
        assert client.read()[0] == 503
        stage.store.put(KEYS.state_version(1), state(1, "edited"))
        assert client.read()[0] == 422
        stage.store.remove(KEYS.state_version(1))
        assert client.read()[0] == 422


@pytest.mark.parametrize("data", [b"", b"{", state(1, version=5)])
def test_what_is_no_state_is_refused(stage: Stage, data: bytes) -> None:
    with stage.serving() as (_, client):
        client.lock()
        assert client.write(data) == 422
    assert stage.versions.list() == []


def test_a_body_that_is_not_what_its_digest_says_is_refused(stage: Stage) -> None:
    with stage.serving() as (_, client):
        client.lock()
        query, headers = f"?ID={MINE['ID']}", {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
        assert client.ask("POST", state(1), query=query, headers=headers)[0] == 400


@pytest.mark.parametrize("length", ["", "-1", "1e3", "²", str(backend_module.LARGEST + 1), "9" * 30])
def test_a_body_has_a_length_and_a_limit(stage: Stage, length: str) -> None:
    with stage.serving() as (_, client):
        client.lock()
        url, secret = client.url, client.settings["TF_HTTP_PASSWORD"]
        token = base64.b64encode(f"stackhold:{secret}".encode()).decode()
        head = f"POST {url.path}?ID={MINE['ID']} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\n"
        given = f"Content-Length: {length}\r\n" if length else "Transfer-Encoding: chunked\r\n"
        with socket.create_connection(("127.0.0.1", url.port or 0), timeout=10) as raw:
            raw.sendall((head + given + "\r\n" + "5\r\nhello\r\n0\r\n\r\n").encode("latin-1", "replace"))
            status = raw.makefile("rb").readline().split()[1]
    assert status == (b"413" if length.startswith(("2", "9")) else b"411")


def test_a_body_that_ends_early_changes_nothing(stage: Stage) -> None:
    with stage.serving() as (_, client):
        client.lock()
        url, secret = client.url, client.settings["TF_HTTP_PASSWORD"]
        token = base64.b64encode(f"stackhold:{secret}".encode()).decode()
        body = state(1)
        head = (
            f"POST {url.path}?ID={MINE['ID']} HTTP/1.1\r\nAuthorization: Basic {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", url.port or 0), timeout=10) as raw:
            raw.sendall(head.encode() + body[:-1])
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(1) == b""
    assert stage.versions.list() == []


def test_the_answer_to_a_write_waits_for_the_record(stage: Stage) -> None:
    saving, may_end = threading.Event(), threading.Event()

    class Slow(ScriptedRun):
        def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
            saving.set()
            assert may_end.wait(10)
            super().save(changes, confirmed=confirmed)

    stage.run = Slow(stage.clock)
    answers: list[int] = []
    with stage.serving() as (_, client):
        client.lock()
        writer = threading.Thread(target=lambda: answers.append(client.write(state(1))))
        writer.start()
        assert saving.wait(10)
        assert client.lock(THEIRS)[0] == 423
        assert answers == []
        may_end.set()
        writer.join(10)
    assert answers == [200]


def test_leaving_waits_for_a_write_that_is_under_way(stage: Stage) -> None:
    saving, may_end = threading.Event(), threading.Event()

    class Slow(ScriptedRun):
        def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
            saving.set()
            assert may_end.wait(10)
            super().save(changes, confirmed=confirmed)

    stage.run = Slow(stage.clock)
    answers: list[int] = []
    with stage.serving() as (server, client):
        client.lock()
        writer = threading.Thread(target=lambda: answers.append(client.write(state(1))))
        writer.start()
        assert saving.wait(10)
        closing = threading.Timer(0.1, may_end.set)
        closing.start()
    writer.join(10)
    assert answers == [200]
    assert server.held is not None


def test_a_mistake_of_ours_is_told_and_does_not_end_the_server(stage: Stage) -> None:
    class Broken(ScriptedRun):
        def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
            raise ZeroDivisionError

    stage.run = Broken(stage.clock)
    with stage.serving() as (server, client):
        client.lock()
        assert client.write(state(1)) == 500
        assert server.refusals == ("a mistake of our own in the state backend: ZeroDivisionError",)
        assert client.read()[0] == 204


def test_a_client_that_hangs_up_leaves_no_trace(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    with stage.serving() as (_, client):
        for _ in range(5):
            socket.create_connection(("127.0.0.1", client.url.port or 0)).close()
        assert client.lock()[0] == 200
    assert capfd.readouterr() == ("", "")


def test_nothing_listens_and_no_thread_is_left_afterwards(stage: Stage) -> None:
    before = set(threading.enumerate())
    with stage.serving() as (_, client):
        client.read()
    with pytest.raises(ConnectionRefusedError):
        client.read()
    until(lambda: set(threading.enumerate()) <= before)


def test_twenty_runs_at_once_have_a_state_each() -> None:
    errors: list[BaseException] = []

    def play(name: str) -> None:
        try:
            with (own := Stage()).serving() as (_, client):
                client.lock()
                for serial in range(1, 6):
                    assert client.write(state(serial, name)) == 200
                assert client.read() == (200, state(5, name))
            assert len(own.versions.list()) == 5
        except BaseException as error:
            errors.append(error)

    players = [threading.Thread(target=play, args=(f"r{number}",)) for number in range(20)]
    for player in players:
        player.start()
    for player in players:
        player.join(30)
    assert errors == []


def test_the_settings_replace_all_that_were_for_another_backend(stage: Stage) -> None:
    with stage.serving() as (server, _):
        given = {"HOME": "/home/ada", "TF_HTTP_ADDRESS": "https://other", "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": "x"}
        env = server.over(given)
        assert env == {"HOME": "/home/ada", **server.env()}
        assert all(name.startswith("TF_HTTP_") for name in server.env())
