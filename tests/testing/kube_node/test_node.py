"""What a test node says before it starts; the rest is shown on a real control plane, in `tests/cluster`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stackhold.testing.kube_node import Access, KubeNode, NotRoot

NOBODY = 65534


@pytest.mark.skipif(sys.platform != "linux", reason="users and processes as Linux has them")
def test_without_root_a_test_node_says_that_it_needs_root() -> None:
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            KubeNode(Access("https://127.0.0.1:1", Path("/none"), "token"), Path("/none"))
        except NotRoot as error:
            os.write(said, str(error).encode())
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as text:
        assert "needs Linux and root" in text.read()
    os.waitpid(child, 0)
