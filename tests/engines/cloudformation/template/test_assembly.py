from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.template import is_assembly, load_assembly
from stackhold.errors import InputError, TemplateError

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Metadata": {"aws:cdk:path": "Shop/Bucket/Resource"}}}}


def stack(template: str, *, dependencies: list[str] | None = None, **more: Any) -> dict[str, Any]:
    properties = {"templateFile": template, **more.pop("properties", {})}
    return {
        "type": "aws:cloudformation:stack",
        "environment": "aws://unknown-account/unknown-region",
        "properties": properties,
        "dependencies": dependencies or [],
        **more,
    }


def write(folder: Path, artifacts: dict[str, Any], **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"version": "48.0.0", "artifacts": artifacts, **more}))
    return folder


def write_assets(folder: Path, name: str, **assets: Any) -> dict[str, Any]:
    (folder / f"{name}.assets.json").write_text(json.dumps({"version": "48.0.0", **assets}))
    return {"type": "cdk:asset-manifest", "properties": {"file": f"{name}.assets.json"}}


def test_stacks_come_with_all_that_a_deploy_needs_to_know(tmp_path: Path) -> None:
    out = write(
        tmp_path / "cdk.out",
        {
            "Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}},
            "Base": stack("Base.template.json", displayName="Base"),
            "Shop": stack(
                "Shop.template.json",
                dependencies=["Base", "Shop.assets"],
                environment="aws://123456789012/eu-west-1",
                displayName="Shop (prod)",
                properties={"stackName": "shop-prod", "tags": {"team": "a"}},
            ),
        },
    )
    write_assets(out, "Shop", files={"f00": {"source": {"path": "Shop.template.json", "packaging": "file"}}})
    base, shop = load_assembly(out)
    assert (base.name, base.environment_region, base.account) == ("Base", None, None)
    assert base.template_file == out / "Base.template.json"
    assert (shop.name, shop.environment_region, shop.account) == ("shop-prod", "eu-west-1", "123456789012")
    assert (shop.display_path, shop.depends_on, shop.tags) == ("Shop (prod)", ("Base",), {"team": "a"})
    assert is_assembly(out)
    assert not is_assembly(tmp_path)


def test_stages_are_entered_and_their_dependencies_kept(tmp_path: Path) -> None:
    out = write(
        tmp_path / "cdk.out",
        {
            "Base": stack("Base.template.json"),
            "assembly-Beta": {
                "type": "cdk:cloud-assembly",
                "properties": {"directoryName": "assembly-Beta", "displayName": "Beta"},
                "dependencies": ["Base"],
            },
            "Last": stack("Last.template.json", dependencies=["assembly-Beta"]),
        },
    )
    write(
        out / "assembly-Beta",
        {
            "BetaApi1234": stack(
                "BetaApi1234.template.json", displayName="Beta/Api", properties={"stackName": "Beta-Api"}
            ),
            "BetaWeb": stack("BetaWeb.template.json", dependencies=["BetaApi1234"]),
        },
    )
    stacks = {found.display_path: found for found in load_assembly(out)}
    assert list(stacks) == ["Base", "Beta/Api", "Beta/BetaWeb", "Last"]
    assert stacks["Beta/Api"].name == "Beta-Api"
    assert stacks["Beta/Api"].template_file == out / "assembly-Beta" / "BetaApi1234.template.json"
    assert stacks["Beta/Api"].depends_on == ("Base",)
    assert stacks["Beta/BetaWeb"].depends_on == ("Base", "Beta/Api")
    assert stacks["Last"].depends_on == ("Beta/Api", "Beta/BetaWeb")


@pytest.fixture
def with_assets(tmp_path: Path) -> Path:
    out = write(
        tmp_path / "cdk.out",
        {
            "Plain": stack("Plain.template.json"),
            "Shop": stack("Shop.template.json", dependencies=["Shop.assets"]),
            "Shop.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Shop.assets.json"}},
        },
    )
    template = {
        "Resources": {
            **TEMPLATE["Resources"],
            "Handler": {
                "Type": "AWS::Lambda::Function",
                "Properties": {"Code": {"S3Key": "abc123.zip"}},
                "Metadata": {"aws:cdk:path": "Shop/Handler/Resource", "aws:asset:path": "asset.abc123"},
            },
        }
    }
    (out / "Shop.template.json").write_text(json.dumps(template))
    return out


@pytest.mark.parametrize(
    ("assets", "message"),
    [
        (
            {"files": {"abc123": {"source": {"path": "asset.abc123", "packaging": "zip"}}}},
            "the stack Shop needs the asset abc123 (asset.abc123), used by Handler (Shop/Handler/Resource)",
        ),
        (
            {
                "files": {"own": {"source": {"path": "Shop.template.json"}}},
                "dockerImages": {"d0c": {"source": {"directory": "asset.d0c"}}, "d0d": {"source": {}}},
            },
            "the stack Shop needs the asset d0c (asset.d0c) and 1 more",
        ),
    ],
)
def test_a_stack_that_needs_an_asset_is_refused_with_who_uses_it(
    with_assets: Path, assets: dict[str, Any], message: str
) -> None:
    write_assets(with_assets, "Shop", **assets)
    with pytest.raises(TemplateError) as caught:
        load_assembly(with_assets)
    assert caught.value.reason == f"{message}; assets are not supported"
    assert caught.value.file.endswith("Shop.template.json")


def test_only_the_chosen_stacks_are_asked_for_assets(with_assets: Path) -> None:
    write_assets(with_assets, "Shop", files={"abc123": {"source": {"path": "asset.abc123"}}})
    assert [found.name for found in load_assembly(with_assets, only=["Plain"])] == ["Plain"]
    with pytest.raises(TemplateError):
        load_assembly(with_assets, only=["Plain", "Shop"])
    with pytest.raises(InputError, match="the app has no stack Nope") as caught:
        load_assembly(with_assets, only=["Nope"])
    assert caught.value.hint == "It has: Plain, Shop."


def test_assets_in_an_older_manifests_metadata_are_seen(tmp_path: Path) -> None:
    note = {"type": "aws:cdk:asset", "data": {"id": "old1", "path": "asset.old1"}}
    out = write(tmp_path / "cdk.out", {"Shop": stack("Shop.template.json", metadata={"/Shop/x": [note]})})
    (out / "Shop.template.json").write_text(json.dumps(TEMPLATE))
    with pytest.raises(TemplateError, match="needs the asset old1"):
        load_assembly(out)


def test_missing_context_is_an_error_that_names_it(tmp_path: Path) -> None:
    missing = [{"key": "availability-zones:account=1:region=eu-west-1", "provider": "availability-zones"}]
    out = write(tmp_path / "cdk.out", {"Shop": stack("Shop.template.json")}, missing=missing)
    with pytest.raises(TemplateError, match="availability-zones:account=1:region=eu-west-1"):
        load_assembly(out)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (None, "cannot be read: No such file"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "it has no version"),
        ('{"version": "1", "artifacts": {"A": {"type": "aws:cloudformation:stack"}}}', "has no templateFile"),
        ('{"version": "1", "artifacts": {"S": {"type": "cdk:cloud-assembly"}}}', "no proper directoryName"),
        (
            '{"version": "1", "artifacts":'
            ' {"S": {"type": "cdk:cloud-assembly", "properties": {"directoryName": ".."}}}}',
            "no proper directoryName",
        ),
    ],
)
def test_a_broken_assembly_is_a_template_error(tmp_path: Path, manifest: str | None, reason: str) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(TemplateError, match=reason):
        load_assembly(tmp_path)


def test_a_manifest_that_is_no_file_or_has_no_end_is_a_template_error(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    os.mkfifo(manifest)
    assert is_assembly(tmp_path)
    with pytest.raises(TemplateError, match="it is a pipe, not a file"):
        load_assembly(tmp_path)
    manifest.unlink()
    manifest.write_text('{"version":' + "[" * 100_000)
    with pytest.raises(TemplateError, match="nested too deeply"):
        load_assembly(tmp_path)


@pytest.mark.parametrize("odd", [5, "x", {"a": 1}, [{}], [[1]], None, True])
def test_a_manifest_of_another_shape_never_breaks_the_reader(tmp_path: Path, odd: Any) -> None:
    fields = {name: odd for name in ("dependencies", "metadata", "environment", "displayName")}
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t.json", "tags": odd}, **fields}
    assets = {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}}
    (tmp_path / "assets.json").write_text(json.dumps({"files": {"a": {"source": {"executable": odd}}}}))
    without: list[Any] = []
    for missing in (without, odd):
        content = {"version": "1", "missing": missing, "artifacts": {"A": artifact, "B": {"type": odd}, "C": assets}}
        (tmp_path / "manifest.json").write_text(json.dumps(content))
        with contextlib.suppress(TemplateError):
            assert len(load_assembly(tmp_path)) == 1
