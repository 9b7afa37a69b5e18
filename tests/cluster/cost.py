"""What the control plane and a Job on a test node cost: `python -m tests.cluster.cost` starts them and prints it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster import parts
from tests.cluster.control_plane import ControlPlane
from tests.cluster.jobs import IMAGE, Bench, shell

from stackhold.testing.kube_node import Image, KubeNode

_JOBS = 5


def main() -> int:
    """Start, measure, print, stop."""
    with (
        tempfile.TemporaryDirectory(prefix="stackhold-cluster-") as folder,
        ControlPlane(Path(folder) / "plane") as plane,
    ):
        for line in control_plane_lines(plane):
            print(line)
        if os.geteuid() != 0:
            print("no test node: it needs root")
            return 0
        with KubeNode(plane.access(), Path(folder) / "node") as node:
            node.images.register(IMAGE, Image())
            print(job_line(Bench(plane.api(), "default")))
    return 0


def control_plane_lines(plane: ControlPlane) -> list[str]:
    """A line for each binary."""
    resident = plane.resident_bytes()
    lines = []
    for part in parts.PARTS:
        line = f"{part.name} {part.version}: {parts.binary(part).stat().st_size / 1e6:.0f} MB"
        for name, seconds in plane.seconds.items():
            if name == part.name:
                line += f", ready {seconds:.1f} s after its start, {resident[name] / 1e6:.0f} MB resident"
        lines.append(line)
    return lines


def job_line(bench: Bench) -> str:
    """How long a Job of nothing takes, from its creation to Complete."""
    took = []
    for number in range(_JOBS):
        begun = time.monotonic()
        bench.create_job(f"nothing-{number}", {"containers": [shell("true")]})
        bench.wait_for_job(f"nothing-{number}", "Complete")
        took.append(time.monotonic() - begun)
    return f"a Job of nothing on a test node: Complete after {sorted(took)[_JOBS // 2]:.1f} s (median of {_JOBS})"


if __name__ == "__main__":
    sys.exit(main())
