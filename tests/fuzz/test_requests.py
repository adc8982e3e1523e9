"""No request, however odd, makes the server fail: every answer is an object, a list or a Status below 500."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec
import pytest
import yaml

from allot.api.protobuf.envelope import MAGIC, MEDIA_TYPE, FrameReader, decode_document
from allot.apiserver.registry import reading
from tests.clients.in_process import TOKEN, Answer, InProcessServer
from tests.fuzz.requests import FuzzedRequest, Requests

IN_THE_GATE: Final = 2_000
BATCHES: Final = 20
IN_A_BATCH: Final = 10_000
TIMEOUT: Final = 504
"""What a revision that is yet to come is answered with, as in Kubernetes."""
_AUTHORIZATION: Final = (b"authorization", f"Bearer {TOKEN}".encode())


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WAIT_FOR_REVISION_SECONDS", 0.0)


def test_the_same_seed_makes_the_same_requests() -> None:
    one, other = Requests(7), Requests(7)
    assert [one.next() for _ in range(500)] == [other.next() for _ in range(500)]


def test_some_odd_requests(caplog: pytest.LogCaptureFixture) -> None:
    _fuzz(1, IN_THE_GATE, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + BATCHES))
def test_many_odd_requests(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    _fuzz(seed, IN_A_BATCH, caplog)


def _fuzz(seed: int, count: int, caplog: pytest.LogCaptureFixture) -> None:
    requests = Requests(seed)
    codes: dict[int, int] = {}
    with caplog.at_level(logging.WARNING), InProcessServer() as server:
        for number in range(count):
            request = requests.next()
            place = f"seed {seed}, request {number}: {request}"
            headers = [*request.headers, _AUTHORIZATION]
            answer = server.request_raw(
                request.method, request.path, request.query, [request.body], headers
            )
            assert not caplog.records, f"{place}\n{caplog.text[-3000:]}"
            _check(request, answer, place)
            codes[answer.code] = codes.get(answer.code, 0) + 1
    # It is no use if nothing gets past the front door.
    assert {200, 201, 400, 404, 405, 409, 415, 422} <= codes.keys(), codes


def _check(request: FuzzedRequest, answer: Answer, place: str) -> None:
    assert 200 <= answer.code < 500 or answer.code == TIMEOUT, f"{place}\n{answer}"
    content_type = answer.headers["content-type"].partition(";")[0]
    if request.method == "HEAD" or "content-encoding" in answer.headers:
        return
    if content_type == "application/json":
        for document in _documents(answer.body, place):
            _check_document(document, answer, place)
    elif content_type == MEDIA_TYPE:
        for document in _messages(answer.body):
            _check_document(document, answer, place)
    elif content_type == "application/yaml":
        _check_document(yaml.load(answer.body, yaml.CSafeLoader), answer, place)


def _documents(body: bytes, place: str) -> list[Any]:
    """The answer, or the objects of the events of a watch."""
    try:
        return [msgspec.json.decode(body)]
    except msgspec.DecodeError:
        events = [msgspec.json.decode(line) for line in body.splitlines()]
        assert all(event.keys() == {"type", "object"} for event in events), place
        return [event["object"] for event in events]


def _messages(body: bytes) -> list[Any]:
    if body.startswith(MAGIC):
        return [decode_document(body)]
    return [decode_document(event.body) for event in FrameReader().feed(body)]


def _check_document(document: Any, answer: Answer, place: str) -> None:
    assert isinstance(document, dict), f"{place}\n{answer}"
    if answer.code >= 400:
        assert document["kind"] == "Status", f"{place}\n{answer}"
        assert document["code"] == answer.code, f"{place}\n{answer}"
        assert document["message"], f"{place}\n{answer}"
