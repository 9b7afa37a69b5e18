"""The probe's cloud itself, over HTTP, without a runtime."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtimes.probe_server import Fault, ProbeServer

if TYPE_CHECKING:
    from collections.abc import Iterator


def ask(server: ProbeServer, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    try:
        connection.request(method, path, body=None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.fixture
def server(probe: ProbeServer) -> Iterator[ProbeServer]:
    yield probe
    probe.reset()


def test_each_creation_gets_an_id_of_its_own_and_is_counted(server: ProbeServer) -> None:
    first = ask(server, "POST", "/things", {"name": "a"})[1]
    second = ask(server, "POST", "/things", {"name": "a", "value": "v"})[1]
    assert first["id"] != second["id"]
    assert (first["created_count"], second["created_count"], server.created("a")) == (1, 2, 2)
    assert ask(server, "GET", f"/things/{second['id']}") == (200, second)
    assert ask(server, "PUT", f"/things/{first['id']}", {"name": "a", "value": "w"})[1]["value"] == "w"
    assert ask(server, "DELETE", f"/things/{first['id']}")[0] == 200
    assert ask(server, "DELETE", f"/things/{first['id']}")[0] == 404
    assert server.names() == ["a"]
    assert ask(server, "GET", "/counts/a")[1]["created_count"] == 2
    assert [one.operation for one in server.requests()] == [
        "create", "create", "read", "update", "delete", "delete", "count",
    ]  # fmt: skip


def test_a_fault_acts_on_its_operation_and_name_as_often_as_told(server: ProbeServer) -> None:
    server.add(Fault("create", "a", times=1, status=500))
    assert ask(server, "POST", "/things", {"name": "b"})[0] == 201
    assert ask(server, "POST", "/things", {"name": "a"})[0] == 500
    assert ask(server, "POST", "/things", {"name": "a"})[0] == 201
    assert (server.created("a"), server.created("b")) == (1, 1)


def test_a_lost_answer_is_no_answer_to_what_was_done(server: ProbeServer) -> None:
    server.add(Fault("create", lose=True))
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        ask(server, "POST", "/things", {"name": "a"})
    assert server.names() == ["a"]


@pytest.mark.parametrize("done_first", [False, True])
def test_what_hangs_waits_for_its_release(server: ProbeServer, done_first: bool) -> None:
    server.add(Fault("create", times=1, hang=True, done_first=done_first))
    asking = threading.Thread(target=ask, args=(server, "POST", "/things", {"name": "a"}))
    asking.start()
    server.wait_until(lambda one: bool(one.requests("create")) and len(one.things()) == int(done_first))
    assert asking.is_alive()
    server.release()
    asking.join(30)
    assert server.names() == ["a"]


def test_another_process_can_tell_it_everything(server: ProbeServer) -> None:
    told = ask(server, "POST", "/control", {"operation": "create", "times": 1, "freeze": "stop"})[1]
    assert [fault["freeze"] for fault in told["faults"]] == ["stop"]
    ask(server, "POST", "/things", {"name": "a"})
    assert ask(server, "GET", "/control")[1]["created"] == {"a": 1}
    assert ask(server, "POST", "/control", {"operation": "create", "tims": 1})[0] == 400
    assert ask(server, "POST", "/control/release")[0] == 200
    assert ask(server, "DELETE", "/control")[1]["things"] == []
