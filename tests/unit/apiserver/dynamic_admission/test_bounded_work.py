"""What policies and webhooks make the server do is done in short stretches, in threads, and within limits."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.apiserver import object_limits
from allot.apiserver.admission.chain import Mutated
from allot.apiserver.api_errors import ApiError
from allot.apiserver.dynamic_admission import webhook_client
from allot.apiserver.dynamic_admission.expressions import Evaluations
from allot.apiserver.dynamic_admission.json_patching import JsonPatchError, apply_json_patch
from allot.apiserver.dynamic_admission.policies import MutatingPolicy, ValidatingPolicy
from allot.apiserver.dynamic_admission.review_request import ObjectSubject
from allot.apiserver.dynamic_admission.webhook_client import TlsContexts
from allot.apiserver.dynamic_admission.webhook_responses import read_review
from allot.apiserver.dynamic_admission.webhooks import Webhook
from allot.apiserver.pacing import LARGE, SLOW, Pacer, Workers
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.patches.json_patches import MAX_OPERATIONS, _Editor
from allot.apiserver.registry.storage_encoding import work_after
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.testing.servers import LocalServer
from tests.conformance.admission_cases import policy
from tests.conformance.admission_webhook import make_certificates


def test_the_loop_has_its_turn_between_short_evaluations() -> None:
    times = iter(range(1000))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> None:
        task = asyncio.create_task(others())
        pacer = Pacer(clock=lambda: float(next(times)), stretch=5.0)
        evaluations = Evaluations(Workers(), pacer)
        for _ in range(60):
            assert await evaluations.run(lambda _: 7) == 7
        task.cancel()

    asyncio.run(run())
    assert turns == 60 // 6


@pytest.mark.parametrize("length", [1, 5_000], ids=["short", "long"])
@pytest.mark.parametrize("kind", ["validating", "mutating", "webhook"])
def test_expressions_are_compiled_in_a_thread_once(
    length: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expression = " || ".join(["true"] * length)
    made: Any
    if kind == "validating":
        made = ValidatingPolicy(policy("p", expression))
    elif kind == "mutating":
        conditions = [{"name": "c", "expression": expression}]
        document = {"metadata": {"name": "p"}, "spec": {"matchConditions": conditions}}
        made = MutatingPolicy(document)
    else:
        conditions = [{"name": "c", "expression": expression}]
        made = Webhook("w", {"name": "h", "matchConditions": conditions})
    threads: list[int] = []
    compile_all = made.compile

    def recorded() -> None:
        threads.append(threading.get_ident())
        compile_all()

    monkeypatch.setattr(made, "compile", recorded)

    async def run() -> None:
        workers = Workers()
        evaluations = Evaluations(workers)
        await evaluations.compiled(made)
        await evaluations.compiled(made)
        workers.close()

    asyncio.run(run())
    assert [each != threading.get_ident() for each in threads] == [True]


def test_a_long_patch_that_fails_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = 0
    apply = _Editor.apply

    def counted(self: _Editor, operation: Any) -> None:
        nonlocal applied
        applied += 1
        apply(self, operation)

    monkeypatch.setattr(_Editor, "apply", counted)
    operations = [{"op": "add", "path": f"/data/k{n}", "value": "v"} for n in range(500)]
    operations.append({"op": "remove", "path": "/data/missing"})

    with pytest.raises(JsonPatchError, match="Unable to remove nonexistent key: missing"):
        apply_json_patch({"data": {}}, operations)
    assert applied == len(operations)


def test_webhooks_may_send_more_operations_than_clients() -> None:
    operations = [{"op": "add", "path": f"/d/k{n}", "value": n} for n in range(MAX_OPERATIONS + 1)]

    assert len(apply_json_patch({"d": {}}, operations)["d"]) == MAX_OPERATIONS + 1


def test_ca_bundles_are_kept_up_to_a_total_size() -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            ca, _ = make_certificates(Path(directory))
        bundles = [base64.b64encode(ca + b"\n" * number).decode() for number in range(0, 30, 3)]
        contexts = TlsContexts(max_bytes=len(bundles[0]) * 3)
        first = await contexts.of(bundles[0])
        assert await contexts.of(bundles[0]) is first
        for bundle in bundles:
            await contexts.of(bundle)
        assert await contexts.of(bundles[0]) is not first

    asyncio.run(run())


def test_a_long_ca_bundle_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(webhook_client, "release_interpreter", pauses.append)

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            ca, _ = make_certificates(Path(directory))
        bundle = base64.b64encode((b"a comment\n" + ca) * 100).decode()
        context = await TlsContexts().of(bundle)
        assert len(context.get_ca_certs()) == 1

    asyncio.run(run())
    assert len(pauses) >= 100 // webhook_client.CERTIFICATES_AT_ONCE


@pytest.mark.parametrize("bundle", [b"no certificate", b"-----BEGIN CERTIFICATE-----\nAA"])
def test_a_bundle_without_certificates(bundle: bytes) -> None:
    with pytest.raises(OSError, match="unable to parse bytes as PEM block"):
        asyncio.run(TlsContexts().of(base64.b64encode(bundle).decode()))


def response(body: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=2**26)
    reader.feed_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body)
    return reader


def test_chunks_of_an_answer_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "MAX_CHUNKS", 10)

    async def run() -> None:
        read = await webhook_client._response(response(b"1\r\nx\r\n" * 9 + b"0\r\n\r\n"))
        assert read.body == b"x" * 9
        with pytest.raises(ValueError, match="more than 10 chunks"):
            await webhook_client._response(response(b"1\r\nx\r\n" * 10 + b"0\r\n\r\n"))

    asyncio.run(run())


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_chunks_may_arrive_in_any_pieces(step: int) -> None:
    body = b"1\r\nx\r\n5;name=value\r\nab\r\nc\r\n A \r\n0123456789\r\n0\r\n\r\n"
    decoder = webhook_client.ChunkDecoder()
    for at in range(0, len(body), step):
        decoder.feed(body[at : at + step])
    assert decoder.is_complete
    assert decoder.body == b"xab\r\nc0123456789"


def test_many_small_chunks_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    original = asyncio.StreamReader.read

    async def counting(reader: asyncio.StreamReader, n: int = -1) -> bytes:
        nonlocal reads
        reads += 1
        return await original(reader, n)

    monkeypatch.setattr(asyncio.StreamReader, "read", counting)
    body = b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"

    async def run() -> None:
        assert (await webhook_client._response(response(body))).body == b"x" * 10_000

    asyncio.run(run())
    assert 0 < reads <= len(body) // webhook_client.CHUNKS_AT_ONCE + 1


@pytest.mark.parametrize("body", [b"x\r\n", b"\r\n", b"1" * 70_000])
def test_malformed_chunks(body: bytes) -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match="malformed"):
            await webhook_client._response(response(body))

    asyncio.run(run())


def test_an_object_that_a_policy_made_too_large_is_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_limits, "MAX_OBJECT", 1000)
    maps = resource_named("", "configmaps")
    subject = ObjectSubject(maps, RawObject({"metadata": {"name": "m"}}))
    monkeypatch.setattr(type(codec_for(maps)), "decode_strictly", None)
    document = {"metadata": {"name": "m"}, "data": {"a": "x" * 1000}}

    with pytest.raises(ApiError, match="too large"):
        subject.replaced(document, "v1", strict=True)


def test_an_answer_with_too_many_values_is_refused() -> None:
    body = json.dumps({"kind": "AdmissionReview", "response": [[]] * 200_000}).encode()
    answer = webhook_client.WebhookResponse(200, "application/json", body)

    with pytest.raises(webhook_client.WebhookCallError, match="more than 150000 values"):
        read_review(answer)


def test_what_a_policy_made_large_is_validated_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However small the request was."""
    threads: dict[str, int] = {}
    prepare = ObjectStore._prepared

    def noticing(self: ObjectStore, resource: Any, obj: Any, request: Any) -> Any:
        threads[obj.metadata.name] = threading.get_ident()
        return prepare(self, resource, obj, request)

    monkeypatch.setattr(ObjectStore, "_prepared", noticing)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    value = f"object.metadata.name == 'grown' ? '{'x' * LARGE}' : 'c'"
    expression = f'[JSONPatch{{op: "add", path: "/data/b", value: {value}}}]'
    conditions = [{"name": "c", "expression": "object.metadata.name != 'left-alone'"}]
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "matchConditions": conditions,
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(f"{path}ies", {"metadata": {"name": "p"}, "spec": spec})
            bound = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
            await server.post(f"{path}ybindings", bound)
            for name in ("left-alone", "changed", "grown"):
                made = {"metadata": {"name": name}, "data": {"a": "b"}}
                await server.post("/api/v1/namespaces/default/configmaps", made)

    asyncio.run(run())
    assert threads["left-alone"] == threads["changed"] == threading.get_ident()
    assert threads["grown"] != threading.get_ident()


@pytest.mark.parametrize(
    ("group", "plural", "mutated", "is_large"),
    [
        pytest.param("", "configmaps", Mutated(None), False, id="unchanged"),
        pytest.param("", "configmaps", Mutated(None, changed_size=LARGE - 1), False, id="changed"),
        pytest.param("", "configmaps", Mutated(None, changed_size=LARGE + 1), True, id="large"),
        pytest.param("", "configmaps", Mutated(None, grown_by=LARGE), True, id="by-plugins"),
        pytest.param(
            "resource.k8s.io", "resourceclaims", Mutated(None, changed_size=100), False, id="claim"
        ),
        pytest.param(
            "resource.k8s.io",
            "resourceclaims",
            Mutated(None, changed_size=LARGE // SLOW + 1),
            True,
            id="claim-with-expressions",
        ),
    ],
)
def test_the_work_after_mutation(group: str, plural: str, mutated: Mutated, is_large: bool) -> None:
    assert (work_after(mutated, resource_named(group, plural), 10) > LARGE) is is_large
