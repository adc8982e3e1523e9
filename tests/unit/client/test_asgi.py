import asyncio

import pytest

from allot.client.asgi import (
    DISCONNECT,
    WHOLE_BODY,
    CollectedAnswer,
    headers_with,
    http_scope,
)

GIVEN = ((b"user-agent", b"test"),)


def test_a_path_is_shown_escaped_and_not() -> None:
    scope = http_scope("GET", "/api/v1/nodes/a%2Fb", b"limit=1", [*GIVEN], b"{}")
    assert (scope["path"], scope["raw_path"]) == ("/api/v1/nodes/a/b", b"/api/v1/nodes/a%2Fb")
    assert (scope["method"], scope["query_string"], scope["headers"]) == (
        "GET",
        b"limit=1",
        [*GIVEN],
    )
    assert scope["extensions"] == {WHOLE_BODY: b"{}"}


@pytest.mark.parametrize(
    ("body", "content_type", "headers", "added"),
    [
        (None, "application/json", None, []),
        (b"", "application/json", None, [(b"content-type", b"application/json")]),
        (b"{}", "application/yaml", None, [(b"content-type", b"application/yaml")]),
        (None, "application/json", {"Accept": "a/b"}, [(b"accept", b"a/b")]),
        (b"{}", "x/y", {"Accept": "a/b"}, [(b"content-type", b"x/y"), (b"accept", b"a/b")]),
    ],
)
def test_headers(
    body: bytes | None,
    content_type: str,
    headers: dict[str, str] | None,
    added: list[tuple[bytes, bytes]],
) -> None:
    assert headers_with(GIVEN, body, content_type, headers) == (*GIVEN, *added)


def test_an_answer_is_collected_from_its_pieces() -> None:
    async def story() -> None:
        answer = CollectedAnswer(b"asked")
        assert await answer.receive() == {"type": "http.request", "body": b"asked"}
        assert await answer.receive() == DISCONNECT
        assert (answer.code, answer.body) == (0, b"")
        await answer.send({"type": "http.response.start", "status": 200, "headers": [*GIVEN]})
        for piece in (b"a", b"", b"b"):
            await answer.send({"type": "http.response.body", "body": piece})
        assert (answer.code, answer.headers, answer.body) == (200, [*GIVEN], b"ab")

    asyncio.run(story())
