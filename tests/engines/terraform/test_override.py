"""The override file that gives a module a backend for the time of a run, and the overlay where it cannot be written."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackhold.engines.terraform.module import backend_override, inspect_module
from stackhold.engines.terraform.overlay import overlaid
from stackhold.engines.terraform.override import is_our_override
from stackhold.engines.terraform.runtime import find_embedded, find_runtime
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = 'module "net" {\n  source = "../modules/net"\n}\noutput "net" {\n  value = module.net.name\n}\n'
NET = """
module "deep" {
  source = "../deep"
}
output "name" {
  value = "${module.deep.name} ${file("../../text")}"
}
"""
DEEP = 'output "name" {\n  value = "deep"\n}\n'
RUN = "0123abcd-run"
NAME = f"stackhold_{RUN}_override.tf"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module that names others beside it and a file further up."""
    for name, text in {"stacks/app": MODULE, "stacks/modules/net": NET, "stacks/modules/deep": DEEP}.items():
        folder = tmp_path / "repo" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(text)
    (tmp_path / "repo" / "text").write_text("text")
    return tmp_path / "repo" / "stacks" / "app"


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_file_is_there_for_the_time_of_the_run_and_for_us_alone(module: Path) -> None:
    with backend_override(module, RUN) as folder:
        assert folder == module
        assert names(module) == ["main.tf", NAME]
        assert 'backend "http" {}' in (module / NAME).read_text()
        assert stat.S_IMODE((module / NAME).stat().st_mode) == 0o600
    assert names(module) == ["main.tf"]


def test_the_file_goes_also_when_the_run_fails(module: Path) -> None:
    with pytest.raises(RuntimeError), backend_override(module, RUN):
        raise RuntimeError
    assert names(module) == ["main.tf"]


def test_our_own_file_does_not_count_as_a_declared_backend(module: Path) -> None:
    with backend_override(module, RUN):
        facts = inspect_module(module)
        assert (facts.backend, facts.files) == (None, ("main.tf",))


def test_two_runs_on_one_module_do_not_take_each_others_file(module: Path) -> None:
    with backend_override(module, "one"):
        with backend_override(module, "two"):
            assert names(module) == ["main.tf", "stackhold_one_override.tf", "stackhold_two_override.tf"]
        assert names(module) == ["main.tf", "stackhold_one_override.tf"]
    assert names(module) == ["main.tf"]


def test_runs_that_begin_and_end_at_once_never_miss_their_file(module: Path) -> None:
    missed: list[str] = []

    def begin_and_end(name: str) -> None:
        for turn in range(50):
            with backend_override(module, f"{name}-{turn}"):
                if not (module / f"stackhold_{name}-{turn}_override.tf").exists():
                    missed.append(name)

    threads = [threading.Thread(target=begin_and_end, args=[name]) for name in ("a", "b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []
    assert names(module) == ["main.tf"]


DYING = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
from stackhold.engines.terraform.override import backend_override
with backend_override(Path({module!r}), "dead"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_removed_by_the_next(module: Path) -> None:
    subprocess.run([sys.executable, "-c", DYING.format(path=sys.path, module=str(module))], check=False)
    assert "stackhold_dead_override.tf" in names(module)
    (module / "stackhold_cut_override.tf").touch()
    with backend_override(module, RUN):
        assert names(module) == ["main.tf", NAME]


def test_files_that_are_not_ours_to_the_letter_stay(module: Path, tmp_path: Path) -> None:
    (module / "stackhold_mine_override.tf").write_text('terraform {\n  backend "http" {}\n}\n')
    (module / "override.tf").write_text("")
    with backend_override(module, RUN):
        shutil.copy(module / NAME, module / "other_override.tf")
        shutil.copy(module / NAME, tmp_path / "elsewhere")
    (module / "stackhold_link_override.tf").symlink_to(tmp_path / "elsewhere")
    before = names(module)
    with backend_override(module, RUN):
        pass
    assert names(module) == before
    assert not any(is_our_override(module / name) for name in before)


def test_a_file_that_was_put_in_our_place_is_not_removed(module: Path) -> None:
    with backend_override(module, RUN):
        (module / NAME).unlink()
        (module / NAME).write_text("mine")
    assert (module / NAME).read_text() == "mine"


def test_a_name_that_is_taken_is_refused(module: Path) -> None:
    (module / NAME).write_text("mine")
    with pytest.raises(InputError, match="cannot write"), backend_override(module, RUN):
        pass
    assert (module / NAME).read_text() == "mine"


# The overlay


def test_an_overlay_holds_links_to_everything_but_the_data_folder(module: Path, tmp_path: Path) -> None:
    (module / ".terraform").mkdir()
    (module / "sub").mkdir()
    with overlaid(module, tmp_path) as overlay:
        assert names(overlay) == ["main.tf", "sub"]
        assert all((overlay / name).is_symlink() for name in names(overlay))
        assert stat.S_IMODE(overlay.stat().st_mode) == 0o700
        (overlay / "written").write_text("x")
        assert (overlay / "../modules/net/main.tf").read_text() == NET
        assert (overlay / "../../text").read_text() == "text"
        assert (overlay / f"{'../' * 40}").resolve() == Path("/")
        top = overlay
        while not top.parent.samefile(tmp_path):
            top = top.parent
    assert not top.exists()
    assert names(module) == [".terraform", "main.tf", "sub"]
    assert (tmp_path / "repo" / "text").exists()


def test_a_state_that_could_not_be_saved_keeps_the_overlay(module: Path, tmp_path: Path) -> None:
    with overlaid(module, tmp_path) as overlay:
        (overlay / "errored.tfstate").write_text("{}")
    assert (overlay / "errored.tfstate").read_text() == "{}"


def commands() -> Iterator[tuple[str, ...]]:
    if (terraform := shutil.which("terraform")) is not None:
        yield (terraform,)
    if find_embedded() is not None:
        yield find_runtime((), "").command


def test_modules_beside_the_module_and_files_above_it_are_found_from_an_overlay(module: Path, tmp_path: Path) -> None:
    found = list(commands())
    if not found:
        pytest.skip("no Terraform is installed")
    config = tmp_path / "empty"
    config.touch()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CHECKPOINT_DISABLE": "1",
        "TF_CLI_CONFIG_FILE": str(config),
    }
    for command in found:
        with overlaid(module, tmp_path) as overlay:
            for arguments in (["init", "-no-color"], ["apply", "-auto-approve", "-no-color"]):
                done = subprocess.run(
                    [*command, *arguments], cwd=overlay, env=env, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, done.stderr
            assert 'net = "deep text"' in done.stdout
    assert names(module) == ["main.tf"]


NOBODY = 65534
READING = """
import os, sys
from pathlib import Path
sys.path[:0] = {path!r}
from stackhold.engines.terraform.override import backend_override
if os.getuid() == 0:
    os.setgroups([])
    os.setuid({user})
with backend_override(Path({module!r}), "run", scratch=Path({scratch!r})) as folder:
    print(folder != Path({module!r}), sorted(os.listdir(folder)))
print(os.listdir({scratch!r}))
"""


def test_a_module_that_may_not_be_written_is_overlaid() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        module, scratch = Path(name, "module"), Path(name, "scratch")
        module.mkdir()
        (module / "main.tf").touch()
        scratch.mkdir()
        scratch.chmod(0o777)
        module.chmod(0o555)
        code = READING.format(user=NOBODY, path=sys.path, module=str(module), scratch=str(scratch))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        module.chmod(0o755)
    assert done.stdout.splitlines() == ["True ['main.tf', 'stackhold_run_override.tf']", "[]"], done.stderr
