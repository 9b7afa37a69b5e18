"""One container's life on a test node: its image is pulled, it is configured, it runs, it ends; each step is shown.

What can still come right (a pull, a Secret that is missing) is tried again until the pod goes away.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.testing.kube_node import fields, plans, process, statuses
from stackhold.testing.kube_node.api import ApiError, ApiUnreachable
from stackhold.testing.kube_node.images import PullFailed, image_id

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stackhold.testing.kube_node.api import Object
    from stackhold.testing.kube_node.images import Image, Images

_RETRY_SECONDS = 0.5
_LONGEST_BACKOFF = 8


@dataclass(slots=True)
class Pace:
    """How many seconds a node takes over what it does, beside the work itself."""

    bind: float = 0.0
    pull: float = 0.0
    start: float = 0.0
    report: float = 0.0
    pull_backoff: float = 1.0
    """How long after a failed pull the next one begins; it doubles to eight times this."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container's life needs of its pod and its node."""

    images: Images
    pace: Pace
    given: Mapping[str, str]
    lookups: fields.Lookups
    now: Callable[[], str]
    pause: Callable[[float], bool]
    """Wait so many seconds; true at once when the pod is to end."""
    changed: Callable[[], None]
    is_ending: Callable[[], bool]


class ContainerRun:
    """A container that runs, or will, in a thread of its own."""

    def __init__(self, container: Object, *, waiting: str, folder: Path, around: Surroundings) -> None:
        self.name = str(container["name"])
        self.folder = folder
        self.process: process.Process | None = None
        self._container = container
        self._around = around
        self._state: statuses.State = statuses.Waiting(waiting)
        self._image_id = ""
        self._told_to_end = False
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether its thread is at work."""
        return self._thread is not None and self._thread.is_alive() and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or could not be started."""
        return isinstance(self._state, statuses.Terminated)

    @property
    def has_succeeded(self) -> bool:
        """Whether it has ended well."""
        return isinstance(self._state, statuses.Terminated) and self._state.exit_code == 0

    def snapshot(self, *, is_over: bool) -> statuses.Container:
        """What there is to say about it; `is_over` says that the pod will not run anything any more."""
        state = statuses.never_ran(self._state) if is_over else self._state
        return statuses.Container(self.name, str(self._container["image"]), self._image_id, state)

    def begin(self, pod: Object, volumes: Mapping[str, Path]) -> None:
        """Start its thread."""
        self._thread = threading.Thread(target=self._live, args=(pod, volumes), name=self.name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for its thread."""
        if self._thread is not None:
            self._thread.join()

    def tell_to_end(self, number: signal.Signals) -> None:
        """Send its first process a signal that asks it to end, once."""
        if self.process is not None and not self._told_to_end:
            self._told_to_end = True
            self.process.send(number)

    def _live(self, pod: Object, volumes: Mapping[str, Path]) -> None:
        image = self._pull()
        plan = None if image is None else self._configure(pod, image, volumes)
        if plan is None or self._around.pause(self._around.pace.start):
            return
        begun = self._around.now()
        try:
            started = process.start(plan)
        except process.StartFailed as error:
            text = f"failed to start the first process: {error}"
            self._become(statuses.Terminated(128, "StartError", text, begun, self._around.now()))
            return
        self.process = started
        container_id = f"testnode://{pod['metadata']['uid']}/{self.name}"
        self._become(statuses.Running(begun, container_id))
        code = started.wait()
        self._become(
            statuses.ended(
                exit_code=code,
                message=self._message(code),
                started_at=begun,
                finished_at=self._around.now(),
                container_id=container_id,
            )
        )

    def _become(self, state: statuses.State) -> None:
        self._state = state
        self._around.changed()

    def _pull(self) -> Image | None:
        reference, policy = self._container["image"], self._container["imagePullPolicy"]
        failures = 0
        while not self._around.is_ending():
            images = self._around.images
            if images.needs_pull(reference, policy) and self._around.pause(self._around.pace.pull):
                return None
            try:
                image = images.take(reference, policy)
            except PullFailed as error:
                self._become(statuses.Waiting(error.reason, str(error)))
                backoff = self._around.pace.pull_backoff * min(2**failures, _LONGEST_BACKOFF)
                failures += 1
                if self._around.pause(backoff / 2):
                    return None
                if error.reason == "ErrImagePull":
                    text = f'Back-off pulling image "{reference}": {error.reason}: {error}'
                    self._become(statuses.Waiting("ImagePullBackOff", text))
                if self._around.pause(backoff / 2):
                    return None
            else:
                self._image_id = image_id(reference)
                return image
        return None

    def _configure(self, pod: Object, image: Image, volumes: Mapping[str, Path]) -> process.Plan | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        message = self.folder / "termination-log"
        message.touch()
        message.chmod(0o666)
        while not self._around.is_ending():
            try:
                return plans.plan(
                    pod,
                    self._container,
                    image,
                    volumes=volumes,
                    given=self._around.given,
                    lookups=self._around.lookups,
                    folder=self.folder,
                )
            except (plans.ConfigError, fields.NotThere, fields.Unsupported) as error:
                self._become(statuses.Waiting("CreateContainerConfigError", str(error)))
            except (ApiError, ApiUnreachable):
                pass
            self._around.pause(_RETRY_SECONDS)
        return None

    def _message(self, code: int) -> str:
        text = statuses.cut_message((self.folder / "termination-log").read_bytes())
        policy = self._container.get("terminationMessagePolicy")
        if not text and code != 0 and policy == "FallbackToLogsOnError":
            text = statuses.cut_log((self.folder / "log").read_bytes())
        return text.decode(errors="replace")
