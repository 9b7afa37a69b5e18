from __future__ import annotations

from pathlib import Path

import yaml
from tests.cli.typing_scene import Shell

GOLDEN = Path(__file__).parents[1] / "golden" / "kube" / "crds.yaml"


def test_the_definitions_of_all_eight_kinds_are_printed_as_one_manifest(tmp_path: Path) -> None:
    typed = Shell(tmp_path).type("crds")
    assert (typed.code, typed.err) == (0, "")
    assert [document["spec"]["names"]["kind"] for document in yaml.safe_load_all(typed.out)] == [
        "TerraformCluster",
        "TerraformClusterTemplate",
        "TerraformMachine",
        "TerraformMachineTemplate",
        "TerraformMachinePool",
        "TerraformMachinePoolTemplate",
        "TerraformClusterIdentity",
        "TerraformPlan",
    ]


def test_a_change_of_the_definitions_is_seen(tmp_path: Path) -> None:
    assert Shell(tmp_path).type("crds").out == GOLDEN.read_text(encoding="utf-8")
