"""Limits per request: work, size of answers, warnings, errors."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from allot.api.json_limits import MAX_VALUES, has_too_many_values, is_too_deep
from allot.apiserver.api_errors import MAX_ERROR_TEXT, MAX_SHOWN, invalid
from allot.apiserver.http import list_bodies
from allot.apiserver.http.object_bodies import MAX_ISSUES
from allot.apiserver.http.responses import MAX_WARNINGS, warning_headers
from allot.apiserver.registry.patches import json_patch, merge_patch, strategic_merge_patch
from allot.apiserver.schemas.types import type_of
from allot.apiserver.selectors import label_parser, parse_label_selector
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.testing.servers import LocalServer
from allot.validation.fields import MAX_ERRORS, FieldPath
from allot.validation.fields import invalid as invalid_field

MAPS = "/api/v1/namespaces/default/configmaps"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


# --- warnings, as Kubernetes cuts them ---


def test_few_warnings_are_told_in_full() -> None:
    assert warning_headers(["a", "b" * 4000, "a"]) == (
        (b"warning", b'299 - "a"'),
        (b"warning", b'299 - "' + b"b" * 4000 + b'"'),
    )


def test_long_warnings_are_cut_and_the_last_left_out() -> None:
    headers = warning_headers(f"{number:03}" + "x" * 400 for number in range(50))
    assert len(headers) == 16
    assert {len(text) for _, text in headers} == {len(b'299 - ""') + 256}


def test_an_answer_has_less_headers_than_clients_refuse() -> None:
    assert len(warning_headers(map(str, range(1000)))) == MAX_WARNINGS < 90


def test_unknown_fields_are_told_up_to_a_hundred() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            sent = {"metadata": {"name": "a"}, **{f"u{number}": 1 for number in range(500)}}
            warned = await server.ask("POST", MAPS, sent)
            strict = await server.ask("PUT", f"{MAPS}/a", sent, query={"fieldValidation": "Strict"})
            more = {f"v{number}": 1 for number in range(500)}
            patched = await server.ask(
                "PATCH", f"{MAPS}/a", more, query={"fieldValidation": "Strict"}, content_type=MERGE
            )
        assert (warned.code, len(warned.header("warning"))) == (201, MAX_WARNINGS)
        assert (strict.code, strict.json["message"].count("unknown field")) == (400, MAX_ISSUES)
        told = patched.json["details"]["causes"][0]["message"]
        assert (patched.code, told.count("unknown field")) == (422, MAX_ISSUES)
        assert 'unknown field "v99"' in told

    asyncio.run(run())


# --- errors ---


def test_many_errors_are_cut() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            labels = {f"not a key {number}": "v" for number in range(30_000)}
            answer = await server.ask("POST", MAPS, {"metadata": {"name": "a", "labels": labels}})
        assert answer.code == 422
        assert len(answer.json["details"]["causes"]) <= MAX_ERRORS
        assert "there may be more errors" in answer.json["message"]
        assert len(answer.content) < 3 * MAX_ERROR_TEXT

    asyncio.run(run())


def test_errors_with_large_values_are_cut() -> None:
    value = ["x" * 100] * 10_000
    errors = [invalid_field(FieldPath("a") @ number, value, "wrong") for number in range(100)]
    status = invalid("", "Pod", "p", errors)
    assert len(status.message) < MAX_ERROR_TEXT + 2 * MAX_SHOWN
    assert status.details is not None
    assert 1 <= len(status.details.causes) < 100


def test_a_bad_patch_does_not_send_the_object_back() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v" * 900_000}})
            sent = {"metadata": {"labels": {"a": 1}}}
            answer = await server.ask("PATCH", f"{MAPS}/a", sent, content_type=MERGE)
        assert answer.code == 422
        assert len(answer.content) < 5 * MAX_SHOWN

    asyncio.run(run())


# --- values ---


@pytest.mark.parametrize(
    ("body", "too_many"),
    [
        (b"[" + b"1," * (MAX_VALUES - 1) + b"1]", False),
        (b"[" + b"1," * MAX_VALUES + b"1]", True),
        (b"[" + b"[]," * MAX_VALUES + b"1]", True),
        (b"{" + b'"a":{},' * MAX_VALUES + b'"b":1}', True),
        (b'["' + b"1,{[" * MAX_VALUES + b'"]', False),
        (b'["' + b'\\",' * MAX_VALUES + b'"]', False),
        (b'{"a":"' + b'\\",[' * MAX_VALUES, False),
    ],
)
def test_values_are_counted_outside_of_texts(body: bytes, too_many: bool) -> None:
    assert has_too_many_values(body) == too_many
    assert not is_too_deep(body)


def test_documents_with_too_many_values_are_refused() -> None:
    async def run() -> list[tuple[int, str]]:
        many = b'{"metadata":{"name":"a"},"zz":[' + b"1," * MAX_VALUES + b"1]}"
        as_yaml = b"zz: [" + b"1," * MAX_VALUES + b"1]"
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "b"}})
            answers = [
                await server.ask("POST", MAPS, many),
                await server.ask("PATCH", f"{MAPS}/b", many, content_type=MERGE),
                await server.ask("POST", MAPS, as_yaml, content_type="application/yaml"),
            ]
        return [(answer.code, answer.json["reason"]) for answer in answers]

    assert asyncio.run(run()) == [(413, "RequestEntityTooLarge")] * 3


# --- steps: four times as much takes about four times as many ---


def steps(work: Callable[[], object]) -> int:
    """How many functions are called, those written in C included."""
    count = 0

    def noticed(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(noticed)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _containers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{number}", "image": "i"} for number in range(count)]


def _strategic(count: int) -> object:
    schema = type_of(resource_named("", "pods").gvk("v1"))
    assert schema is not None
    order = [{"name": f"c{number}"} for number in reversed(range(count))]
    patch = {"spec": {"containers": _containers(count)[::-1], "$setElementOrder/containers": order}}
    return strategic_merge_patch(
        {"spec": {"containers": _containers(count)}}, json.dumps(patch).encode(), schema
    )


def _operations(count: int) -> object:
    patch = [{"op": "add", "path": f"/data/k{number}", "value": "v"} for number in range(count)]
    return json_patch({"data": {}}, json.dumps(patch).encode())


def _merge(count: int) -> object:
    patch = {f"u{number}": {"a": number} for number in range(count)}
    return merge_patch({f"u{number}": 1 for number in range(count)}, json.dumps(patch).encode())


def _strict(count: int) -> object:
    body = json.dumps({f"u{number}": 1 for number in range(count)}).encode()
    return codec_for(resource_named("", "configmaps")).strict_issues(body, "v1")


@pytest.mark.parametrize("work", [_strategic, _operations, _merge, _strict])
def test_work_grows_with_its_input(work: Callable[[int], object]) -> None:
    work(10)
    few, many = (steps(lambda count=count: work(count)) for count in (500, 2000))  # type: ignore[misc]
    assert few < many < 6 * few


class _Counted(str):
    """A string that counts how often it is compared."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_patch_compares_unknown_fields_with_stored_ones_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 1000
    codec = codec_for(resource_named("", "configmaps"))
    plain = codec.strict_issues

    def counted(body: bytes, version: str) -> list[str]:
        return [_Counted(issue) for issue in plain(body, version)]

    monkeypatch.setattr(codec, "strict_issues", counted)

    async def run() -> None:
        async with LocalServer() as server:
            fields = {f"u{number}": 1 for number in range(count)}
            await server.post(MAPS, {"metadata": {"name": "a"}, **fields})
            _Counted.compared = 0
            sent = {"data": {"k": "v"}}
            answer = await server.ask("PATCH", f"{MAPS}/a", sent, content_type=MERGE)
            assert (answer.code, answer.header("warning")) == (200, [])

    asyncio.run(run())
    assert _Counted.compared <= 5 * count


# --- lists in pieces ---


@pytest.mark.parametrize("accept", ["application/json", "application/yaml", TABLE])
@pytest.mark.parametrize("query", [{}, {"pretty": "true"}, {"labelSelector": "none=such"}])
def test_a_long_list_says_the_same_in_pieces(
    accept: str, query: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with LocalServer(clock=lambda: NOW) as server:  # tables show ages
            for number in range(20):
                await server.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"k": "a\nb"}})
            headers = {"accept": accept}
            whole = await server.ask("GET", MAPS, query=query, headers=headers)
            monkeypatch.setattr(list_bodies, "PIECE_BYTES", 300)
            monkeypatch.setattr(list_bodies, "WHOLE_BYTES", 500)
            pieces = await server.ask("GET", MAPS, query=query, headers=headers)
            zipped = await server.ask(
                "GET", MAPS, query=query, headers={**headers, "accept-encoding": "gzip"}
            )
        assert pieces.content == whole.content
        assert whole.header("content-length") == [str(len(whole.content))]
        kind = whole.header("content-type")[0]
        shown = yaml.safe_load(whole.content) if "yaml" in kind else whole.json
        items = shown["rows" if accept == TABLE else "items"]
        assert len(items) == (0 if "labelSelector" in query else 20)
        if items:
            assert pieces.header("content-length") == []
            assert gzip.decompress(zipped.content) == whole.content

    asyncio.run(run())


# --- selectors ---


def test_long_selectors_are_not_remembered() -> None:
    label_parser._remembered.cache_clear()
    long = f"a in ({','.join(map(str, range(1000)))})"
    assert parse_label_selector(long).matches({"a": "999"})
    assert not parse_label_selector(long).matches({"a": "1000"})
    assert parse_label_selector("a=b") is parse_label_selector("a=b")
    assert label_parser._remembered.cache_info().currsize == 1
