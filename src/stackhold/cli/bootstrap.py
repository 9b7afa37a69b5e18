"""`stackhold bootstrap`: create, or complete, the bucket for records and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.interruption import say_from_here
from stackhold.cli.options import bucket_options, invocation
from stackhold.cli.store_address import BucketAddress
from stackhold.cli.wiring import Wiring
from stackhold.errors import InputError

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@bucket_options
@click.pass_obj
def bootstrap(surroundings: Surroundings, /, **options: object) -> None:
    """Create the bucket that --state names, by default stackhold-state-ACCOUNT-REGION.

    The bucket is versioned, encrypted and closed to other accounts, and it is proved that its server keeps the
    conditions that locks rest on. Can be repeated: what is as it should be is left alone.
    """
    from stackhold.adapters.s3 import create_state_bucket

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    address, source = call.settings.store.value, call.settings.store.source
    if not isinstance(address, BucketAddress) and source:
        raise InputError(
            f"{source} names {address.url}: a directory needs no bootstrap",
            hint="Name a bucket with --state s3://BUCKET.",
        )
    bucket = address.bucket if isinstance(address, BucketAddress) else None
    say_from_here("the bucket may be there in part; run the same bootstrap again")
    report = create_state_bucket(wiring.session, bucket, region=wiring.region_for_new(), clock=wiring.clock)
    lines = [
        f"{report.bucket} ({report.region}) is ready: {'created' if report.created else 'it was there'}",
        *(f"  {step}" for step in report.steps),
        "",
        f"Use it with --state s3://{report.bucket}, STACKHOLD_STATE, or state in stackhold.toml.",
    ]
    document = {
        "bucket": report.bucket,
        "region": report.region,
        "created": report.created,
        "steps": list(report.steps),
        "state": f"s3://{report.bucket}",
    }
    call.output.answer(document, "\n".join(lines))
