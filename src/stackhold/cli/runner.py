"""`stackhold runner run`: the runner of a Kubernetes Job. Opens no store; its result document is the run's record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import Duration

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.group()
def runner() -> None:
    """What a Job runs: one operation on one root module, with a result document."""


@runner.command()
@click.option(
    "--op",
    "operation",
    required=True,
    type=click.Choice(["apply", "plan", "destroy", "refresh", "drift", "restore"]),
    help="The operation.",
)
@click.option("--bin", "command", metavar="WORD", multiple=True, help="The runtime: a command, repeated for its words.")
@click.option("--image", metavar="REF", default="", help="The image that module and providers come from, as written.")
@click.option("--module", metavar="DIR", required=True, help="The module.")
@click.option("--providers", metavar="DIR", default="", help="A mirror of providers, the only source where it exists.")
@click.option("--workdir", metavar="DIR", required=True, help="A folder of this run's own.")
@click.option(
    "--config", metavar="DIR", default="", help="main.tf.json and terraform.tfvars.json. [default: the module]"
)
@click.option("--result", "result_file", metavar="FILE", required=True, help="Where the result document goes.")
@click.option("--backend-config", metavar="KEY=VALUE", multiple=True, help="For init, as it is.")
@click.option("--lock-timeout", type=Duration(0, 3_600_000), default="300s", help="Wait of a step for the state lock.")
@click.option("--stop-timeout", type=Duration(1), default="1m", help="How long a stopped step may take to end.")
@click.option("--force-unlock", "unlock", metavar="ID", default="", help="Clear this state lock right after init.")
@click.option("--guard-deletes", is_flag=True, help="Block a plan that deletes or replaces without approval.")
@click.option("--inputs-hash", metavar="HASH", default="", help="Names the inputs of the plan.")
@click.option(
    "--allow-deletes-hash", metavar="HASH", default="", help="Approves deletions of this plan or these inputs."
)
@click.option("--expect-plan", metavar="HASH", default="", help="Apply only the plan with this hash.")
@click.option("--plan-key-file", metavar="FILE", default="", help="The key of the plan's hash.")
@click.option("--restore-chunks", metavar="FILE", multiple=True, help="The backup, gzipped, in parts and in order.")
@click.option("--restore-resources", metavar="N", type=int, default=0, help="How many resources the backup records.")
@click.option("--event-object", metavar="REF", default="", help="The object that events are about.")
@click.option("--job-name", metavar="NAME", default="", help="The Job that this is.")
@click.pass_obj
def run(surroundings: Surroundings, /, **options: object) -> int:
    """Run one operation and write the result document; exit 0 when it went well, 1 when not, 2 on a usage error."""
    from stackhold.cli.runner_run import run_job

    return run_job(surroundings, options)
