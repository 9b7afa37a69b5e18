"""Volumes as a container sees them: contents, links, modes, groups. Groups need root."""

from __future__ import annotations

import base64
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.testing.kube_node.fields import Lookups, NotThere, Unsupported
from stackhold.testing.kube_node.volumes import Contents, make

if TYPE_CHECKING:
    from pathlib import Path

GROUP = 65532


def _secret(name: str) -> dict[str, Any]:
    if name != "s":
        raise NotThere(name)
    return {"data": {key: base64.b64encode(key.encode()).decode() for key in ("one", "two")}}


def _config_map(name: str) -> dict[str, Any]:
    return {"data": {"ca.crt": name}, "binaryData": {"raw": base64.b64encode(b"\xff").decode()}}


CONTENTS = Contents(
    lookups=Lookups(secret=_secret, config_map=_config_map),
    token=lambda options: f"token for {options.get('audience')}",
)


def volume(folder: Path, source: dict[str, Any], **spec: Any) -> Path:
    meta = {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}
    pod = {"metadata": meta, "spec": {"volumes": [{"name": "v", **source}], **spec}}
    return make(pod, folder, CONTENTS)["v"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_empty_folder_is_everybodys(tmp_path: Path) -> None:
    made = volume(tmp_path, {"emptyDir": {}})
    assert (list(made.iterdir()), mode(made)) == ([], 0o777)


def test_a_secrets_entries_are_links_through_data_with_the_mode_asked_for(tmp_path: Path) -> None:
    made = volume(tmp_path, {"secret": {"secretName": "s", "defaultMode": 0o400}})
    assert {path.name: path.read_text() for path in made.iterdir() if path.is_file()} == {"one": "one", "two": "two"}
    assert os.readlink(made / "one") == "..data/one"
    assert (made / "..data").is_symlink()
    assert mode(made / "one") == 0o400


def test_chosen_entries_lie_where_they_are_wanted(tmp_path: Path) -> None:
    items = [{"key": "one", "path": "deep/name", "mode": 0o600}]
    made = volume(tmp_path, {"secret": {"secretName": "s", "items": items}})
    assert (made / "deep/name").read_text() == "one"
    assert mode(made / "deep/name") == 0o600
    assert not (made / "two").exists()


def test_a_missing_secret_is_waited_for_and_leaves_nothing_unless_it_is_optional(tmp_path: Path) -> None:
    with pytest.raises(NotThere):
        volume(tmp_path, {"secret": {"secretName": "none"}})
    with pytest.raises(NotThere):
        volume(tmp_path, {"secret": {"secretName": "s", "items": [{"key": "none", "path": "none"}]}})
    assert not (tmp_path / "v").exists()
    assert list(volume(tmp_path, {"secret": {"secretName": "none", "optional": True}}).glob("[!.]*")) == []


def test_a_projection_joins_token_certificates_and_fields(tmp_path: Path) -> None:
    sources = [
        {"serviceAccountToken": {"path": "token", "audience": "a", "expirationSeconds": 3607}},
        {"configMap": {"name": "root-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    made = volume(tmp_path, {"projected": {"sources": sources, "defaultMode": 0o644}})
    texts = {name: (made / name).read_text() for name in ("token", "ca.crt", "namespace")}
    assert texts == {"token": "token for a", "ca.crt": "root-ca", "namespace": "ns"}
    assert (volume(tmp_path / "2", {"configMap": {"name": "m"}}) / "raw").read_bytes() == b"\xff"


def test_a_volume_or_projection_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="persistentVolumeClaim"):
        volume(tmp_path, {"persistentVolumeClaim": {"claimName": "c"}})
    with pytest.raises(Unsupported, match="clusterTrustBundle"):
        volume(tmp_path, {"projected": {"sources": [{"clusterTrustBundle": {"path": "x"}}]}})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another group")
def test_a_pods_group_may_read_what_it_is_given_and_write_what_is_empty(tmp_path: Path) -> None:
    context = {"fsGroup": GROUP}
    secret = volume(tmp_path, {"secret": {"secretName": "s", "defaultMode": 0o400}}, securityContext=context)
    assert (mode(secret / "one"), (secret / "one").stat().st_gid) == (0o440, GROUP)
    assert mode(secret) & 0o2050 == 0o2050
    empty = volume(tmp_path / "2", {"emptyDir": {}}, securityContext=context)
    assert (mode(empty), empty.stat().st_gid) == (0o2777, GROUP)
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    assert mode(volume(tmp_path / "3", token, securityContext=context) / "token") == 0o640
