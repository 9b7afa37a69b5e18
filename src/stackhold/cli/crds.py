"""`stackhold crds`: the definitions of the kinds that a cluster's API server has to know. Reads and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@click.pass_obj
def crds(surroundings: Surroundings, /) -> None:
    """Print the CustomResourceDefinitions of the eight Kubernetes kinds as YAML.

    Apply them before the manager starts: stackhold crds | kubectl apply --server-side -f -
    """
    from stackhold.kube.api import definitions, manifest

    surroundings.stdout.write(manifest(definitions()))
