"""What the pages show is what happens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.docs.snippets import Desk, Step, fits, steps_of
from tests.runtimes.catalogue import find

if TYPE_CHECKING:
    from stackhold.testing.emulators import Emulator

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if steps_of(page.read_text(encoding="utf-8"))
)


@pytest.mark.emulator
@pytest.mark.story
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_shows(page: str, ministack: Emulator, tmp_path: Path) -> None:
    has_runtime = any(find(name) for name in ("terraform", "embedded")) or bool(shutil.which("tofu"))
    desk = Desk.at(tmp_path, ministack, examples=ROOT / "examples")
    complaints = [
        found
        for step in steps_of((ROOT / page).read_text(encoding="utf-8"))
        if (has_runtime or not step.needs_runtime) and (found := desk.complaint(step))
    ]
    assert not complaints, "\n\n".join([page, *complaints])


def test_the_readme_and_the_tutorial_show_commands() -> None:
    assert {"README.md", "docs/tutorial/first-stack.md"} <= set(PAGES)


def test_commands_are_found_with_their_output_and_exit_code() -> None:
    page = "a\n```console expect=1\n$ one -x\nout\n\nmore\n$ two\n```\n```text\n$ no\n```\n"
    assert steps_of(page) == [Step(3, "one -x", ("out", "", "more")), Step(7, "two", (), 1)]


@pytest.mark.parametrize(
    ("shown", "said", "is_fit"),
    [
        ((), "", True),
        ((), "x\n", False),
        (("a",), "a\n", True),
        (("a",), "a", True),
        (("a",), "a\nb\n", False),
        (("a…c",), "abbc\n", True),
        (("a…c",), "ab\nc\n", False),
        (("…",), "", True),
        (("…", "z"), "x\ny\nz\n", True),
        (("a", "…", "z"), "a\nz\n", True),
        (("a", "…"), "b\n", False),
        (("a.c",), "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_in_a_line_or_for_any_lines(
    shown: tuple[str, ...], said: str, is_fit: bool
) -> None:
    assert fits(shown, said) is is_fit
