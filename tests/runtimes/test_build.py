"""The build, with a scripted `go` in place of the real one: a process that notes its call and writes its output."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runtimes.parts import HOSTS, PARTS, PROBE, PROVIDERS, platform_name

ROOT = Path(__file__).parents[2]
SCRIPTED_GO = f"""#!{sys.executable}
import os, pathlib, sys, time
with open(os.environ["GO_CALLS"], "a") as calls:
    calls.write(pathlib.Path.cwd().name + "\\n")
time.sleep(float(os.environ.get("GO_SECONDS", "0")))
pathlib.Path(os.environ["GOMODCACHE"], "some-module").mkdir(parents=True, exist_ok=True)
if os.environ.get("GO_FAILS") == pathlib.Path.cwd().name:
    print("go: downloading something")
    sys.exit("thing.go:1: it does not compile")
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("a binary of " + pathlib.Path.cwd().name)
"""


class Bench:
    """A cache of its own, and a `go` on PATH that tells which module folders it was asked to build."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.runtimes = self.cache / "stackhold" / "runtimes"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.go = self.bin / "go"
        self.go.write_text(SCRIPTED_GO)
        self.go.chmod(0o700)
        self.calls = folder / "calls"
        self.calls.touch()

    def start(self, *names: str, **env: str) -> subprocess.Popen[str]:
        own = {"XDG_CACHE_HOME": str(self.cache), "PATH": str(self.bin), "GO_CALLS": str(self.calls)}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.runtimes.build", *names],
            cwd=ROOT,
            env={**os.environ, **own, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def build(self, *names: str, **env: str) -> tuple[int, str]:
        process = self.start(*names, **env)
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def built(self) -> list[str]:
        return self.calls.read_text().split()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_part_is_built_once_and_only_binaries_stay(bench: Bench) -> None:
    assert bench.build()[0] == 0
    assert bench.build()[0] == 0
    assert bench.built() == [part.module.name for part in PARTS]
    binaries = {bench.runtimes / part.key / part.file for part in PARTS}
    left = {path for path in bench.runtimes.rglob("*") if path.is_file()}
    assert {path for path in left if not path.parts[len(bench.runtimes.parts)].startswith("mirror-")} == {
        *binaries,
        bench.runtimes / ".lock",
    }
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in [bench.runtimes, *binaries])


def test_the_mirror_has_each_provider_under_both_names(bench: Bench) -> None:
    bench.build()
    (mirror,) = bench.runtimes.glob("mirror-*")
    for source, part in PROVIDERS.items():
        for host in HOSTS:
            binary = mirror / host / source / part.version / platform_name() / part.file
            assert binary.read_text() == f"a binary of {part.module.name}"


def test_a_part_can_be_built_alone_and_an_unknown_one_is_refused(bench: Bench) -> None:
    assert bench.build("probe")[0] == 0
    assert bench.built() == [PROBE.module.name]
    code, said = bench.build("prob")
    assert code == 1
    assert "no part prob; there are probe, time, tofu" in said


def test_a_failed_build_says_why_and_leaves_nothing_of_that_part(bench: Bench) -> None:
    code, said = bench.build(GO_FAILS="time")
    assert code == 1
    assert "it does not compile" in said
    assert "downloading" not in said
    assert [path.name for path in bench.runtimes.iterdir() if path.is_dir()] == [PROBE.key]
    assert bench.build()[0] == 0


def test_without_go_the_build_says_what_to_install(bench: Bench) -> None:
    bench.go.unlink()
    code, said = bench.build()
    assert code == 1
    assert "`go` is not on PATH; install Go" in said
    assert "Traceback" not in said


def test_two_builds_at_once_build_each_part_once(bench: Bench) -> None:
    both = [bench.start(GO_SECONDS="0.3") for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted(bench.built()) == sorted(part.module.name for part in PARTS)


def test_what_a_killed_build_left_is_removed_by_the_next(bench: Bench) -> None:
    process = bench.start(GO_SECONDS="60")
    end = time.monotonic() + 60
    while not bench.built():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert list(bench.runtimes.glob(".building-*"))
    assert bench.build()[0] == 0
    assert not list(bench.runtimes.glob(".building-*"))
