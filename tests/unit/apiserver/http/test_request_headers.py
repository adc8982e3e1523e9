"""The headers of a request: read once for requests that send the same."""

from __future__ import annotations

import random

import pytest

from allot.apiserver.http.request_headers import (
    MAX_REMEMBERED,
    MAX_REMEMBERED_BYTES,
    LastHeaders,
    RequestHeaders,
)

NAMES = (b"Accept", b"accept", b"Impersonate-User", b"Expect", b"X-A")
VALUES = (b"", b"a", b"100-Continue", b"\xff")

Pairs = list[tuple[bytes, bytes]]


def facts(headers: RequestHeaders) -> tuple[object, ...]:
    return (
        headers.pairs,
        headers.by_name,
        dict(headers.text),
        headers.impersonates,
        headers.expects_continue,
    )


def test_what_is_read() -> None:
    headers = LastHeaders().read(
        [(b"Accept", b"first"), (b"EXPECT", b"100-Continue"), (b"accept", b"\xe4")]
    )

    assert headers.pairs == [
        (b"accept", b"first"),
        (b"expect", b"100-Continue"),
        (b"accept", b"\xe4"),
    ]
    assert headers.by_name == {b"accept": b"first", b"expect": b"100-Continue"}
    assert headers.text == {"accept": "first", "expect": "100-Continue"}
    assert headers.expects_continue
    assert not headers.impersonates


@pytest.mark.parametrize("seed", range(20))
def test_requests_of_one_connection_are_read_like_those_of_many(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    last = LastHeaders()
    blocks: list[Pairs] = [
        [(dice.choice(NAMES), dice.choice(VALUES)) for _ in range(dice.randrange(4))]
        for _ in range(4)
    ]
    for _ in range(40):
        block = [*dice.choice(blocks)]
        assert facts(last.read(block)) == facts(LastHeaders().read([*block]))
        if dice.random() < 0.3:
            block.append((b"X-Trailer", b"later"))  # as the parser does with trailers


def test_the_same_headers_are_read_once() -> None:
    last = LastHeaders()
    first = last.read([(b"Accept", b"a")])

    assert last.read([(b"Accept", b"a")]) is first
    assert last.read([(b"Accept", b"b")]) is not first


def test_trailers_are_no_headers_of_the_next_request() -> None:
    last = LastHeaders()
    received = [(b"Accept", b"a")]
    last.read(received)
    received.append((b"Impersonate-User", b"ann"))

    assert last.read([*received]).impersonates


@pytest.mark.parametrize(
    "received",
    [
        pytest.param([(b"a", b"x" * MAX_REMEMBERED_BYTES)], id="long"),
        pytest.param([(b"a%d" % n, b"") for n in range(MAX_REMEMBERED + 1)], id="many"),
    ],
)
def test_long_headers_are_not_remembered(received: Pairs) -> None:
    last = LastHeaders()
    first = last.read(received)

    assert first.by_name == dict(received)
    assert last.read([*received]) is not first
    assert facts(last.read([*received])) == facts(first)
