"""Where the control plane's binaries come from; the build itself is that of `tests/runtimes/test_build.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cluster.parts import API_SERVER, ETCD, PARTS

ROOT = Path(__file__).parents[2]


def build(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.build"],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_folder_of_ready_binaries_is_used_as_it_is(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part.file).touch(mode=0o700)
    done = build(KUBEBUILDER_ASSETS=str(tmp_path), PATH="")
    assert done.returncode == 0, done.stderr
    assert all(str(tmp_path / part.file) in done.stdout for part in PARTS)


def test_a_folder_without_one_of_them_is_said(tmp_path: Path) -> None:
    (tmp_path / ETCD.file).touch(mode=0o700)
    done = build(KUBEBUILDER_ASSETS=str(tmp_path))
    assert done.returncode == 1
    assert f"KUBEBUILDER_ASSETS is {tmp_path}, which has no kube-apiserver" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_modules_pin_the_versions_that_the_keys_name() -> None:
    assert f"go.etcd.io/etcd/server/v3 v{ETCD.version}" in (ETCD.module / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{API_SERVER.version}" in (API_SERVER.module / "go.mod").read_text()


def test_every_staging_module_is_replaced_by_the_release_of_the_same_kubernetes() -> None:
    text = (API_SERVER.module / "go.mod").read_text()
    minor, patch = API_SERVER.version.split(".")[1:]
    replaced = re.findall(r"^\s(k8s\.io/[\w-]+) => \1 (v\S+)$", text, re.MULTILINE)
    assert len(replaced) > 25
    assert {version for _, version in replaced} == {f"v0.{minor}.{patch}"}
