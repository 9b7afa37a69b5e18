"""The embedded Terraform without anything built: a command like any other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.runtimes import modules

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtimes.catalogue import Runtime

DATA = """
resource "terraform_data" "noted" {
  input = "a value"

  provisioner "local-exec" {
    command = "echo made >> made"
  }
}
"""


def test_a_module_of_data_alone_needs_no_provider(embedded: Runtime, bare_env: dict[str, str], tmp_path: Path) -> None:
    module = modules.Module(embedded, bare_env, tmp_path / "module")
    module.write(DATA)
    module.tf("init")
    assert module.change_summary() == {"add": 1, "change": 0, "remove": 0}
    assert module.change_summary() == {"add": 0, "change": 0, "remove": 0}
    assert (module.folder / "made").read_text() == "made\n"
    module.tf("destroy", "-auto-approve")
    assert module.resources() == []


def test_it_names_its_version_and_answers_a_bad_flag_as_the_program_does(
    embedded: Runtime, bare_env: dict[str, str], tmp_path: Path
) -> None:
    said = embedded.run("version", "-json", folder=tmp_path, env=bare_env)
    assert json.loads(said.stdout)["terraform_version"] == embedded.version
    refused = embedded.run("plan", "-no-such-flag", folder=tmp_path, env=bare_env)
    assert refused.returncode == 1
    assert "no-such-flag" in refused.stderr
