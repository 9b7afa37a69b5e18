"""Commands typed in memory: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.cli.app import run
from stackhold.cli.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Typed:
    """What came of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Shell:
    """A folder to type commands in, with nothing in the environment but what is put there."""

    cwd: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def type(self, *arguments: str) -> Typed:
        """Run one command to its end; nobody is there to answer a question."""
        out, err = io.StringIO(), io.StringIO()
        code = run(
            arguments,
            Surroundings(environ=self.environ, cwd=self.cwd, stdin=io.StringIO(), stdout=out, stderr=err),
        )
        return Typed(code, out.getvalue(), err.getvalue())
