"""Keys become paths, so no accepted key may lead anywhere else."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.errors import InputError
from stackhold.ports.keys import checked_key, checked_prefix

CURIOUS = st.text(alphabet=st.sampled_from([*"ab./\\~ \n\x00\x7f", "é", "\ud800", "\ufffe", "日"]), max_size=12)


@given(key=st.one_of(st.text(), CURIOUS))
def test_an_accepted_key_is_a_path_below_the_root_that_reads_back_as_the_key(key: str) -> None:
    try:
        parts = checked_key(key)
    except InputError:
        return
    path = PurePosixPath("/root").joinpath(*parts)
    assert path.relative_to("/root").as_posix() == key
    assert ".." not in path.parts
    assert key.encode()


@given(prefix=st.one_of(st.text(), CURIOUS))
def test_an_accepted_prefix_is_its_parts(prefix: str) -> None:
    try:
        parts, rest = checked_prefix(prefix)
    except InputError:
        return
    assert "/".join([*parts, rest]) == prefix
    assert ".." not in parts


@pytest.mark.parametrize("key", ["a" * 256, "/".join(["a" * 200] * 6), "a/../b", "C:\\x", "a\u0000b"])
def test_keys_that_no_store_can_hold_are_refused(key: str) -> None:
    with pytest.raises(InputError):
        checked_key(key)
