"""A state that nobody could write is found, kept from other eyes, and never put in place of one that went on."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from tests.engines.terraform.states import encrypted, state

from stackhold.engines.terraform.salvage import (
    ERRORED,
    Standing,
    errored_in,
    find_errored,
    keep_emergency,
    read_errored,
    standing,
)
from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "99999999-0000-4000-8000-000000000009"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run's own folder."""
    folder = tmp_path / "runs" / "r1"
    folder.mkdir(parents=True)
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_there_is_mostly_nothing(module: Path, kept: Path) -> None:
    assert find_errored(module, kept) == []
    assert errored_in(module) is None
    assert find_errored(module / "nowhere") == []


def test_what_the_runtime_left_is_its_owner_s_alone_once_found(module: Path, kept: Path) -> None:
    left = module / ERRORED
    left.write_bytes(state(3, "a"))
    left.chmod(0o644)
    assert find_errored(module, kept) == [left]
    assert errored_in(module) == left
    assert mode(left) == 0o600
    assert read_errored(left) == state(3, "a")


@pytest.mark.parametrize("data", [b"", b"{", state(1, version=5)])
def test_a_file_that_holds_no_state_is_named(module: Path, data: bytes) -> None:
    (module / ERRORED).write_bytes(data)
    with pytest.raises(InputError, match=r"errored\.tfstate"):
        find_errored(module)


def test_a_link_a_folder_and_a_pipe_are_not_followed(module: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(state(1))
    for make in (
        lambda place: place.symlink_to(tmp_path / "elsewhere"),
        lambda place: place.mkdir(),
        os.mkfifo,
    ):
        place = module / ERRORED
        make(place)
        with pytest.raises(InputError, match="cannot be read"):
            read_errored(place)
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()


def test_a_state_from_the_stream_is_kept_beside_the_module(module: Path, kept: Path) -> None:
    place = keep_emergency(state(4, "a"), module, kept)
    assert place == module / ERRORED
    assert mode(place) == 0o600
    assert place.read_bytes() == state(4, "a")
    assert [entry.name for entry in module.iterdir()] == [ERRORED]
    assert find_errored(module, kept) == [place]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_where_the_module_cannot_be_written_it_is_kept_beside_the_run_s_folder(module: Path, kept: Path) -> None:
    module.chmod(0o500)
    place = keep_emergency(state(4), module, kept)
    assert place.parent == kept.parent


def test_where_the_module_is_not_there_it_is_kept_beside_the_run_s_folder(module: Path, kept: Path) -> None:
    gone = module / "gone"
    place = keep_emergency(state(4), gone, kept)
    assert place.parent == kept.parent
    assert mode(place) == 0o600
    assert find_errored(gone, kept) == [place]
    assert find_errored(gone, kept.parent / "another-run") == [place]
    assert find_errored(module, kept) == []


def test_a_state_that_went_on_stays(module: Path, kept: Path) -> None:
    (module / ERRORED).write_bytes(state(9, "a", "b"))
    assert keep_emergency(state(8, "a"), module, kept) == module / ERRORED
    assert (module / ERRORED).read_bytes() == state(9, "a", "b")


def test_an_older_state_makes_way(module: Path, kept: Path) -> None:
    (module / ERRORED).write_bytes(state(7, "a"))
    keep_emergency(state(8, "a", "b"), module, kept)
    assert (module / ERRORED).read_bytes() == state(8, "a", "b")


def test_a_state_of_another_line_is_not_written_over(module: Path, kept: Path) -> None:
    (module / ERRORED).write_bytes(state(2, lineage=OTHER))
    place = keep_emergency(state(8), module, kept)
    assert place.parent == kept.parent
    assert (module / ERRORED).read_bytes() == state(2, lineage=OTHER)
    assert find_errored(module, kept) == [module / ERRORED, place]


def test_what_is_no_state_is_not_kept(module: Path, kept: Path) -> None:
    with pytest.raises(InputError, match="the state in the stream"):
        keep_emergency(b"Emergency", module, kept)
    assert list(module.iterdir()) == []


@pytest.mark.parametrize(
    ("left", "current", "is_"),
    [
        (state(3), None, Standing.NEWER),
        (state(3), state(2), Standing.NEWER),
        (state(3), state(3), Standing.SAME),
        (state(3, "a"), state(3, "a").replace(b"\n", b"").replace(b"  ", b""), Standing.SAME),
        (state(3, "a"), state(3, "b"), Standing.OTHER),
        (state(3), state(4), Standing.OLDER),
        (state(3), state(2, lineage=OTHER), Standing.OTHER),
        (encrypted(3), encrypted(2), Standing.NEWER),
        (state(0, "a", lineage=""), state(0, lineage=""), Standing.NEWER),
        (state(3, "a"), state(0, lineage=""), Standing.NEWER),
        (state(0, "a", lineage=""), state(1, "a"), Standing.SAME),
        (state(0, "a", lineage=""), state(1, "b"), Standing.OTHER),
    ],
)
def test_a_left_state_is_compared_by_line_and_serial(left: bytes, current: bytes | None, is_: Standing) -> None:
    assert standing(left, current) is is_
