"""The composition root: picks clock, store and session from settings, and says who runs what.

The only file of the command line that reads the process's environment and names adapters. What is slow to import
is imported where it is first needed: a directory store never loads botocore.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import shlex
import socket
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stackhold._version import __version__
from stackhold.cli.store_address import DirectoryAddress
from stackhold.errors import InputError
from stackhold.model.ids import RunId, region_name, stack_name
from stackhold.model.instant import iso
from stackhold.model.run import RunIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.adapters.aws import AwsSession
    from stackhold.cli.settings import Settings
    from stackhold.model.ids import Region, StackName
    from stackhold.ports.clock import Clock
    from stackhold.ports.state_versions import StateVersions
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys


_WHICH = "See what is recorded with: stackhold state list"


def process_environment() -> Mapping[str, str]:
    """This process's environment."""
    return os.environ


@dataclass(frozen=True)
class Wiring:
    """What one command works with, each part made when first asked for."""

    settings: Settings

    @cached_property
    def clock(self) -> Clock:
        """The machine's clocks."""
        from stackhold.adapters.clock import SystemClock

        return SystemClock()

    @cached_property
    def session(self) -> AwsSession:
        """The AWS session that flags, environment and profile describe."""
        from stackhold.adapters.aws import AwsSession, Timeouts

        return AwsSession(
            region=self.settings.region.value,
            profile=self._profile,
            clock=self.clock,
            timeouts=Timeouts.within(self._call_budget_ms),
        )

    @property
    def _profile(self) -> str | None:
        """The profile to insist on: beside keys in the environment, a variable of AWS names only its settings."""
        named = self.settings.profile
        has_keys = bool(process_environment().get("AWS_ACCESS_KEY_ID"))
        return None if has_keys and named.source.startswith("AWS_") else named.value

    @cached_property
    def store(self) -> Store:
        """The store that `--state` names."""
        address = self.settings.store.value
        if isinstance(address, DirectoryAddress):
            from stackhold.adapters.files import BUSY_MS, DirectoryStore

            return DirectoryStore(
                address.path,
                clock=self.clock,
                allow_network=self.settings.allow_network_dir,
                busy_ms=min(BUSY_MS, self._call_budget_ms),
                url=address.url,
            )
        from stackhold.adapters.s3 import S3Store

        return S3Store(address.bucket, session=self.session, clock=self.clock)

    @cached_property
    def _call_budget_ms(self) -> int:
        """How long one call may take: to the cloud or to a store of either kind, none may outlast the lock's margin."""
        from stackhold.decide.fence import margins

        return margins(self.settings.lock_ttl.ms).call_budget_ms

    def region_and_source(self) -> tuple[Region | None, str]:
        """The region of a stack that need not be recorded yet, None when there is none, and what says so."""
        named = self.settings.region
        if named.value:
            return region_name(named.value), named.source
        with contextlib.suppress(InputError):
            return self.session.region, "the AWS configuration"
        return None, ""

    def region_for_new(self) -> Region:
        """The region of a stack that need not be recorded yet; raises `InputError` when none is named."""
        named = self.settings.region.value
        return region_name(named) if named else self.session.region

    def keys_of_recorded(self, stack: str) -> Keys:
        """Where a recorded stack lies: in the region that is named, else in the only one that has it."""
        from stackhold.runs.inspect import find_region, stack_is_nowhere
        from stackhold.runs.layout import Keys

        name, prefix = stack_name(stack, hint=_WHICH), self.prefix
        if self.settings.workspace is not None:
            return Keys(prefix, name, self.settings.workspace)
        named = self.settings.region.value
        region = region_name(named) if named else find_region(self.store, prefix=prefix, stack=name)
        if region is None:
            raise stack_is_nowhere(self.store, prefix=prefix, stack=name)
        return Keys(prefix, name, region)

    def keys(self, stack: StackName, region: Region) -> Keys:
        """Where a stack lies."""
        from stackhold.runs.layout import Keys

        return Keys(self.prefix, stack, region)

    @property
    def prefix(self) -> str:
        """The first part of every key: of Terraform's stacks when a workspace is named."""
        from stackhold.runs.layout import terraform_prefix

        prefix = self.settings.state_prefix.value
        return prefix if self.settings.workspace is None else terraform_prefix(prefix)

    def state_versions(self, keys: Keys) -> StateVersions:
        """The versions of a Terraform state that the store keeps."""
        from stackhold.runs.state_versions import StoreStateVersions

        return StoreStateVersions(self.store, keys, self.clock)

    def run_folder(self, keys: Keys, run_id: RunId) -> Path:
        """A folder of this host for what one run of a Terraform stack must keep beside it: 0700, not made yet."""
        place = f"{self.settings.store.value.url_anywhere}/{keys.root}"
        digest = hashlib.sha256(place.encode()).hexdigest()[:16]
        base = process_environment().get("XDG_CACHE_HOME") or "~/.cache"
        return Path(base).expanduser() / "stackhold" / "tf" / digest / run_id

    def identity(self, *, stack: StackName, region: Region, operation: str, engine: str) -> RunIdentity:
        """A new run's identity."""
        stamp = iso(self.clock.now()).replace("-", "").replace(":", "").replace(".", "")
        return RunIdentity(
            run_id=RunId(f"{stamp[:-1]}Z-{self.clock.nonce()[:8]}"),
            stack=stack,
            region=region,
            operation=operation,
            owner=owner(),
            engine=engine,
            tool_version=__version__,
        )

    def command(self, verb: str, stack: StackName, region: Region) -> str:
        """A command line about this very stack, with every flag that decides which lock is meant, for any folder."""
        place = "--region" if self.settings.workspace is None else "--workspace"
        parts = ["stackhold", verb, stack, place, region, "--state", self.settings.store.value.url_anywhere]
        if self.settings.state_prefix.source:
            parts += ["--state-prefix", self.settings.state_prefix.value]
        if self.settings.profile.value:
            parts += ["--profile", self.settings.profile.value]
        if self.settings.allow_network_dir:
            parts.append("--allow-network-dir")
        return shlex.join(parts)


def owner() -> str:
    """This process as a lock names it: `user@hostname:pid`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}:{os.getpid()}"
