"""Bodies of server-side apply that are not what they should be."""

from __future__ import annotations

import pytest

from allot.apiserver.api_errors import ApiError
from allot.apiserver.http.apply_bodies import read_configuration


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata": {"name\xed\xa0\x80": "a"}}',  # a surrogate, which UTF-8 does not have
        b'{"metadata": {"name": "\\ud800"}}',
        b'{"metadata": {"name": "\xff"}}',
        '{"metadata": {}}'.encode("utf-16"),
    ],
)
def test_characters_that_cannot_be_answered_are_refused(body: bytes) -> None:
    with pytest.raises(ApiError) as refusal:
        read_configuration(body)
    assert refusal.value.code == 400
    assert str(refusal.value).encode()


def test_pairs_of_surrogates_are_one_character() -> None:
    assert read_configuration(b'{"a": "\\ud83d\\ude00"}').document == {"a": "\U0001f600"}
