"""Continue tokens."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from allot.apiserver.registry.continue_tokens import (
    ContinueToken,
    ContinueTokenError,
    decode,
    encode,
)


def token(**content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def ours(**changes: Any) -> str:
    return token(**({"v": "meta.k8s.io/v1", "rv": 5, "start": "ns/a"} | changes))


def test_round_trip() -> None:
    assert decode(encode(7, "ns/name")) == ContinueToken(7, "ns/name")


def test_the_prefix_is_not_in_the_token() -> None:
    text = encode(7, "/configmaps/ns/name", "/configmaps/")

    assert decode(text) == ContinueToken(7, "ns/name")
    assert decode(text, "/secrets/") == ContinueToken(7, "/secrets/ns/name")


def test_padding_does_not_matter() -> None:
    for start in ("a", "ab", "abc", "abcd"):
        assert decode(ours(start=start)).after_key == start
        assert decode(ours(start=start).rstrip("=")).after_key == start


def test_a_key_outside_of_the_list_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="not in the list"):
        encode(1, "/pods/a", "/secrets/")


@pytest.mark.parametrize(
    "text",
    [
        "", "garbage", "ä", "a" * 10_000, "=", "%00", "e30", "bnVsbA", token(), token(v=1),
        ours(v="meta.k8s.io/v2"), ours(rv=0), ours(rv=-1), ours(rv="5"), ours(rv=2**63), ours(rv=1.5),
        ours(start=None), ours(start=""), ours(start="/a"), ours(start="a/"), ours(start="a//b"),
        ours(start="../secrets/a"), ours(start="a/../../b"), ours(start="./a"),
        ours(more=1),
    ],
)  # fmt: skip
def test_tokens_that_are_not_ours(text: str) -> None:
    with pytest.raises(
        ContinueTokenError, match=r"^invalid continue token: continue key is not valid: .+"
    ):
        decode(text, "/configmaps/")
