"""Which blocks are seen in a configuration file, and what is never taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.hcl import headers

BACKEND = (("terraform",), ("backend", "s3"))


def seen(text: str) -> list[tuple[tuple[str, ...], ...]]:
    return [header.path for header in headers(text)]


def test_blocks_are_seen_with_those_around_them_and_their_lines() -> None:
    text = 'terraform {\n  backend "s3" {\n    key = "x"\n  }\n}\n\nresource "a" "b" {\n  lifecycle {\n  }\n}\n'
    assert [(header.path, header.line) for header in headers(text)] == [
        ((("terraform",),), 1),
        (BACKEND, 2),
        ((("resource", "a", "b"),), 7),
        ((("resource", "a", "b"), ("lifecycle",)), 8),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'terraform {\n  backend "s3" {}\n}',
        "terraform {\n  backend s3 {}\n}",
        'terraform { backend "s3" {} }',
        'terraform\t{\r\n  backend /* why */ "s3" {\r\n  }\r\n}\r\n',
        'terraform {\n  required_version = ">= 1.5" # {\n  backend "s3" {}\n}',
        'terraform {\n  required_providers {\n    a = { source = "b/c" }\n  }\n  backend "s3" {}\n}',
        'terraform {\n  x = [for a in b : {\n    c = a\n  } if d]\n  backend "s3" {}\n}',
        'terraform {\n  x = "a ${b("}", {\n c = "${"{"}" })} d"\n  backend "s3" {}\n}',
        'terraform {\n  x = <<E\n }\nE\n  backend "s3" {}\n}',
        'terraform {\n  x = <<-E\n }\n  "\n    E\n  backend "s3" {}\n}',
        'terraform {\n  x = <<E\n${b("}",\nE\n)}\nE \n  backend "s3" {}\n}',
        'terraform {\n  x = "$${" \n  y = "%%{" \n  z = "\\"{"\n  backend "s3" {}\n}',
        'terraform {\n  x = <<E\n$${\nE\n  backend "s3" {}\n}',
        'terraform {\n  x = "%{if a}{%{else}}%{endif}"\n  backend "s3" {}\n}',
        'terraform {\n  /* { \n } */ // {\n  backend "s3" {}\n}',
    ],
)
def test_a_backend_is_found_whatever_is_written_around_it(text: str) -> None:
    assert BACKEND in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        '# terraform { backend "s3" {} }',
        '// terraform { backend "s3" {} }',
        '/* terraform {\n backend "s3" {}\n} */',
        'x = "terraform { backend \\"s3\\" {} }"',
        'locals {\n  a = <<E\nterraform {\n  backend "s3" {}\n}\nE\n}',
        'locals {\n  a = <<-E\n    EE\nterraform {\n  backend "s3" {}\n}\n  E\n}',
        'terraform {\n  x = {\n    backend = "s3"\n  }\n}',
        'locals {\n  x = "${f({\nterraform {\nbackend "s3" {\n"\n}',
        'other {\n  terraform {\n    backend "s3" {}\n  }\n}',
        'terraform {\n  other {\n    backend "s3" {}\n  }\n}',
        'terraform {\n}\nbackend "s3" {}',
        'terraform = {\n  backend "s3" {}\n}',
        '/* never ends terraform { backend "s3" {} }',
        'x = <<E\nterraform {\n  backend "s3" {}\n}\n',
    ],
)
def test_what_only_looks_like_a_backend_is_none(text: str) -> None:
    assert BACKEND not in seen(text)


PIECES = st.sampled_from(
    [
        *'{}()[]"\n\\ =$%#/',
        "${",
        "%{",
        "$${",
        "<<E\n",
        "<<-E\n",
        "\nE\n",
        "/*",
        "*/",
        "//",
        "terraform",
        "backend",
        '"s3"',
    ]
)


@given(st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=60)))
def test_any_text_is_read_to_its_end_and_lines_never_go_back(text: str) -> None:
    lines = [header.line for header in headers(text)]
    assert lines == sorted(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_nothing_in_a_comment_or_a_string_changes_what_is_seen_after_it(noise: str) -> None:
    after = 'terraform {\n  backend "s3" {}\n}\n'
    in_comment = "# " + noise.replace("\n", " ") + "\n"
    in_string = noise.replace("\\", "").replace('"', '\\"').replace("\n", "\\n").replace("$", "").replace("%", "")
    assert seen(in_comment + after) == seen(after)
    assert seen(f'x = "{in_string}"\n' + after) == seen(after)
    assert seen(f"x = <<THE_END\n{in_string}\nTHE_END\n{after}") == seen(after)


def test_a_big_file_and_a_deep_one_are_read_to_their_end() -> None:
    block = 'resource "a" "b" {\n  x = "${join(",", ["}", "{"])}"\n}\n'
    assert len(seen(block * 2_000)) == 2_000
    assert seen("x = " + "{[(" * 20_000) == []
    assert seen('x = "' + '${"' * 20_000) == []
