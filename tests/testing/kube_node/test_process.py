"""Containers as real processes: their namespaces, files, identity, signals and ends. Needs root on Linux."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stackhold.testing.kube_node.images import HOST_PATH
from stackhold.testing.kube_node.process import CAPABILITIES, Identity, Mount, Plan, StartFailed, start

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="containers need Linux and root, for their namespaces"
)

ROOT = Identity(user=0, group=0, groups=(), capabilities=tuple(CAPABILITIES.values()), no_new_privileges=False)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A container on this machine's files that does nothing."""
    return Plan(
        argv=["true"],
        env={"PATH": HOST_PATH},
        working_dir="/",
        host_name="a-pod",
        identity=ROOT,
        mounts=[],
        layers=[],
        on_host=True,
        read_only_root=False,
        scratch=tmp_path / "root",
        log=tmp_path / "log",
    )


def ran(plan: Plan, script: str) -> tuple[int, str]:
    code = start(replace(plan, argv=["sh", "-c", script])).wait()
    return code, plan.log.read_text()


def test_a_container_is_process_1_with_its_own_host_name_processes_and_environment(plan: Plan) -> None:
    code, said = ran(
        replace(plan, env={**plan.env, "A": "b c"}), 'echo $$ $(hostname) "$A"; ls /proc | grep -c "^[0-9]"'
    )
    first, processes = said.splitlines()
    assert (code, first) == (0, "1 a-pod b c")
    assert int(processes) < 6


def test_what_a_container_writes_goes_away_with_it(plan: Plan, tmp_path: Path) -> None:
    assert ran(plan, f"echo hi > /etc/written && mkdir -p /captf && rm -rf {tmp_path}/none && cat /etc/written") == (
        0,
        "hi\n",
    )
    assert not os.path.exists("/etc/written")
    assert not os.path.exists("/captf")


def test_image_files_lie_over_the_machines_and_mounts_over_both(plan: Plan, tmp_path: Path) -> None:
    image, volume = tmp_path / "image", tmp_path / "volume"
    (image / "captf/module").mkdir(parents=True)
    (image / "captf/module/main.tf").write_text("of the image\n")
    volume.mkdir()
    (volume / "file").write_text("of the volume\n")
    mounts = [
        Mount(volume, "/var/run/some/where", read_only=False),
        Mount(volume / "file", "/captf/one", read_only=True),
    ]
    given = replace(plan, layers=[image], mounts=mounts)
    script = "cat /captf/module/main.tf /captf/one; echo new > /var/run/some/where/new; echo no > /captf/one"
    code, said = ran(given, script)
    assert said.startswith("of the image\nof the volume\n")
    assert "Read-only file system" in said
    assert code != 0
    assert (volume / "new").read_text() == "new\n"
    assert not os.path.exists("/var/run/some")


def test_an_image_of_nothing_has_nothing_but_what_is_mounted(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="No such file"):
        start(replace(plan, on_host=False, argv=["/bin/sh"]))
    system = [Path(name) for name in ("/bin", "/lib", "/lib64") if os.path.exists(name)]
    mounts = [Mount(one.resolve(), str(one), read_only=True) for one in system]
    image = tmp_path / "image"
    (image / "captf").mkdir(parents=True)
    bare = replace(plan, on_host=False, scratch=tmp_path / "second", layers=[image], mounts=mounts)
    assert start(replace(bare, argv=["/bin/sh", "-c", "echo /*"])).wait() == 0
    assert set(plan.log.read_text().split()) == {"/captf", "/dev", "/proc", "/sys", *map(str, system)}


def test_a_read_only_root_refuses_writes_but_volumes_take_them(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    given = replace(plan, read_only_root=True, mounts=[Mount(tmp_path / "work", "/tmp", read_only=False)])
    code, said = ran(given, "echo a > /tmp/a; echo a > /etc/a")
    assert code != 0
    assert "Read-only file system" in said
    assert (tmp_path / "work/a").exists()


def test_a_user_without_capabilities_is_that_user_and_root_without_them_cannot_override(plan: Plan) -> None:
    nobody = replace(ROOT, user=65532, group=65532, groups=(4242,), capabilities=(), no_new_privileges=True)
    script = "id -u; id -G; grep -E 'CapBnd|CapEff|NoNewPrivs' /proc/self/status | tr -d '\\t'"
    code, said = ran(replace(plan, identity=nobody), script)
    assert (code, said.split()) == (
        0,
        ["65532", "65532", "4242", "CapEff:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1"],
    )
    plan.log.unlink()
    assert "CapEff:0000000000000000" in ran(replace(plan, identity=replace(ROOT, capabilities=())), script)[1]


def test_a_signal_reaches_the_first_process_and_its_exit_code_comes_back(plan: Plan) -> None:
    running = start(replace(plan, argv=["sh", "-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done"]))
    wait_for_text(plan.log, "ready")
    running.send(signal.SIGTERM)
    assert running.wait() == 42
    running.send(signal.SIGTERM)


def test_a_first_process_that_handles_no_sigterm_does_not_get_it_and_sigkill_ends_all_of_it(plan: Plan) -> None:
    running = start(replace(plan, argv=["sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000; :"]))
    wait_for_text(plan.log, "ready")
    inside = _in_namespace_of(running.pid)
    assert len(inside) == 3
    running.send(signal.SIGTERM)
    time.sleep(0.1)
    assert _in_namespace_of(running.pid) == inside
    running.send(signal.SIGKILL)
    assert running.wait() == 128 + signal.SIGKILL
    assert not any(os.path.exists(f"/proc/{pid}") for pid in inside)


def test_a_container_dies_with_the_thread_that_started_it(plan: Plan) -> None:
    started = []
    thread = threading.Thread(target=lambda: started.append(start(replace(plan, argv=["sleep", "1000"]))))
    thread.start()
    thread.join()
    assert started[0].wait() == 128 + signal.SIGKILL


def test_what_cannot_be_executed_is_said(plan: Plan) -> None:
    with pytest.raises(StartFailed, match="no-such-program"):
        start(replace(plan, argv=["/no-such-program"]))


def wait_for_text(path: Path, text: str) -> None:
    give_up = time.monotonic() + 30
    while not path.exists() or text not in path.read_text():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def _in_namespace_of(pid: int) -> set[int]:
    """The processes, by their ids on this machine, that are in the PID namespace of `pid`."""
    own = os.readlink(f"/proc/{pid}/ns/pid")
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/ns/pid") == own:
                    found.add(int(name))
            except OSError:
                continue
    return found
