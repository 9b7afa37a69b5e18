from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stackhold.ports.named_file import Unreadable, read_named_file


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 100)
    assert read_named_file(file, limit=100) == b"x" * 100
    with pytest.raises(Unreadable, match="more than 99 bytes"):
        read_named_file(file, limit=99)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to("f")
    assert read_named_file(tmp_path / "link", limit=1) == b"x"


def test_what_is_no_file_is_never_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        said = {}
        for name in ("pipe", "socket", "loop", "none", ".", "/dev/zero", "a\0b"):
            with pytest.raises(Unreadable) as raised:
                read_named_file(Path(name), limit=10)
            said[name] = str(raised.value)
    assert said == {
        "pipe": "it is a pipe, not a file",
        "socket": "it is a socket, not a file",
        "loop": "Too many levels of symbolic links",
        "none": "No such file or directory",
        ".": "Is a directory",
        "/dev/zero": "it is a device, not a file",
        "a\0b": "its name is no path",
    }
