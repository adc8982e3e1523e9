"""Policies: budgets and deadlines of their expressions, audit annotations, and what they cost when there are none."""

from __future__ import annotations

import asyncio
import json
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.apiserver.dynamic_admission import configuration, expressions, params, policies
from allot.apiserver.dynamic_admission.expressions import OUT_OF_BUDGET
from allot.apiserver.dynamic_admission.matching import Match, read_match
from allot.apiserver.dynamic_admission.policies import ValidatingPolicy
from allot.apiserver.dynamic_admission.review_request import ObjectSubject
from allot.apiserver.dynamic_admission.validating_policies import evaluate
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import HUGE, LARGE, Pacer, Workers
from allot.apiserver.watch_cache.codecs import RawCodec
from allot.apiserver.watch_cache.representations import REPRESENTATIONS
from allot.cel.admission import compile_admission
from allot.deadline import no_deadline
from allot.testing.servers import LocalServer
from tests.conformance.admission_bad_objects import path_of
from tests.conformance.admission_cases import (
    binding,
    config_map,
    json_patch,
    mutating,
    mutating_binding,
    policy,
    rule,
)

MAPS = "/api/v1/namespaces/{}/configmaps"


def test_all_expressions_of_a_policy_have_one_budget() -> None:
    costly = "[1, 2, 3].all(x, object.size > x)"
    made = ValidatingPolicy(policy("p", *[costly] * 5))
    values = {"object": {"size": 9}}

    assert evaluate(made, dict(values), no_deadline).denials == []
    (denial,) = evaluate(made, dict(values), no_deadline, limit=50).denials
    assert denial.message == OUT_OF_BUDGET


def test_variables_are_charged_to_the_budget_and_computed_once() -> None:
    variables = [{"name": "x", "expression": "[1, 2, 3, 4, 5, 6, 7, 8].map(n, n * 2).size()"}]
    made = ValidatingPolicy(policy("p", *["variables.x == 8"] * 5, variables=variables))

    assert evaluate(made, {}, no_deadline, limit=250).denials == []
    (denial,) = evaluate(made, {}, no_deadline, limit=100).denials
    assert denial.message == OUT_OF_BUDGET


LOOPS = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, object.metadata.name != 'x'))"


async def deploy(server: LocalServer, *objects: dict[str, Any]) -> None:
    for each in objects:
        await server.post(path_of(each), each)


def test_an_expression_that_takes_long_goes_on_in_a_thread_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run(seconds: float) -> int:
        monkeypatch.setattr(expressions, "INLINE_SECONDS", -1.0)
        monkeypatch.setattr(expressions, "EVALUATION_SECONDS", seconds)
        async with LocalServer() as server:
            await deploy(server, policy("default", LOOPS), binding("default"))
            answer = await server.ask("POST", MAPS.format("default"), config_map("m"))
            if answer.code != 201:
                assert "operation interrupted" in answer.json["message"]
            return answer.code

    assert asyncio.run(run(60.0)) == 201
    assert asyncio.run(run(-1.0)) == 422


class Lines:
    def __init__(self) -> None:
        self.text = b""

    def write(self, lines: bytes) -> None:
        self.text += lines

    def close(self) -> None:
        pass


def test_annotations_are_in_the_audit_log() -> None:
    lines = Lines()
    rules = AuditPolicy((AuditRule(Level.METADATA),))

    async def run() -> None:
        auditor = Auditor(rules, lines, lambda: datetime.now(UTC))
        async with LocalServer(auditor=auditor) as server:
            annotations = [
                {"key": "name", "valueExpression": "'it is ' + object.metadata.name"},
                {"key": "none", "valueExpression": "null"},
            ]
            made = policy("default", "object.metadata.name == 'x'", auditAnnotations=annotations)
            await deploy(server, made, binding("default", "Audit"))
            await server.post(MAPS.format("default"), config_map("m"))
        auditor.close()

    asyncio.run(run())
    events = [json.loads(line) for line in lines.text.splitlines()]
    (event,) = [
        event
        for event in events
        if event["requestURI"] == MAPS.format("default") and event["stage"] == "ResponseComplete"
    ]
    annotations = event["annotations"]
    assert annotations["default/name"] == "it is m"
    assert "default/none" not in annotations
    (failure,) = json.loads(annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "failed expression: object.metadata.name == 'x'",
        "policy": "default",
        "binding": "default",
        "expressionIndex": 0,
        "validationActions": ["Audit"],
    }


def test_a_policy_is_in_force_from_its_answer_to_its_deletion() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            activity = server.server._dynamic.activity
            await server.post(MAPS.format("default"), config_map("before"))
            assert activity.is_idle
            await deploy(server, policy("default", "false"), binding("default"))
            assert (await server.ask("POST", MAPS.format("default"), config_map("m"))).code == 422
            place = f"{path_of(binding('x'))}/default"
            assert (await server.ask("DELETE", place)).code == 200
            await server.post(MAPS.format("default"), config_map("m"))
            for number in range(100):
                await server.post(MAPS.format("default"), config_map(f"m{number}"))
            assert activity.is_idle

    asyncio.run(run())


def test_expressions_are_compiled_once_per_version(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = compile_admission

    def counting(text: str, *rest: Any) -> Any:
        compiled.append(text)
        return real(text, *rest)

    monkeypatch.setattr(expressions, "compile_admission", counting)

    async def run() -> None:
        async with LocalServer() as server:
            await deploy(server, policy("default", "object.metadata.name != 'x'"))
            await deploy(server, binding("default"))
            for number in range(3):
                await server.post(MAPS.format("default"), config_map(f"a{number}"))
            await deploy(server, policy("other", "true"), binding("other"))
            await server.post(MAPS.format("default"), config_map("b"))

    asyncio.run(run())
    assert compiled == ["object.metadata.name != 'x'"]


@pytest.mark.parametrize(("length", "in_thread"), [(10, False), (2 * LARGE, True)])
def test_the_documents_of_large_objects_are_made_in_a_thread(
    length: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a small write to a large object: its old one, and for a delete."""
    threads: list[bool] = []
    made = ObjectSubject._document
    home = threading.get_ident()

    def noted(self: ObjectSubject, obj: Any, version: str) -> Any:
        threads.append(threading.get_ident() != home)
        return made(self, obj, version)

    async def run() -> None:
        async with LocalServer() as server:
            selects = {"objectSelector": {"matchLabels": {"a": "b"}}}
            deployed = policy("default", "object != null || oldObject != null", constraints=selects)
            await deploy(server, deployed, binding("default"))
            monkeypatch.setattr(ObjectSubject, "_document", noted)
            metadata = {"name": "m", "labels": {"a": "b"}}
            maps = MAPS.format("default")
            await server.post(maps, {"metadata": metadata, "data": {"k": "x" * length}})
            path, change = f"{maps}/m", {"data": {"another": "v"}}
            headers = {"content-type": "application/merge-patch+json"}
            assert (await server.ask("PATCH", path, change, headers=headers)).code == 200
            assert (await server.ask("DELETE", path)).code == 200
            assert threads == [in_thread] * len(threads)
            assert threads

    asyncio.run(run())


@pytest.mark.parametrize("policies", [1, 10])
@pytest.mark.parametrize(
    ("sent", "added", "documents"),
    [
        pytest.param(1, 1, 0, id="small"),
        pytest.param(1, 2 * LARGE, 3, id="grown"),  # changed, in the second round, and validated
        pytest.param(2 * LARGE, 1, 4, id="large"),
    ],
)
def test_documents_are_made_in_a_thread_once_for_all_policies(
    sent: int, added: int, documents: int, policies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hops: list[Any] = []
    is_counted = ContextVar("is_counted", default=False)  # there are tasks in the background
    plain = Workers.run

    async def counted(self: Workers, size: int, work: Any) -> Any:
        if LARGE < size < HUGE and is_counted.get():  # HUGE is an evaluation that took long
            hops.append(getattr(work, "func", None))
        return await plain(self, size, work)

    async def run() -> None:
        async with LocalServer() as server:
            patch = f'[JSONPatch{{op: "add", path: "/data/b", value: "{"x" * added}"}}]'
            await deploy(
                server, mutating("default", json_patch(patch)), mutating_binding("default")
            )
            for name in map("p{}".format, range(policies)):
                deployed = policy(name, "object.data.b != ''", cluster=True)
                await deploy(server, deployed, binding(name))
            await server.post(MAPS.format("default"), config_map("compiled", a="a"))
            monkeypatch.setattr(Workers, "run", counted)
            is_counted.set(True)
            await server.post(MAPS.format("default"), config_map("m", a="x" * sent))

    asyncio.run(run())
    made = [work for work in hops if getattr(work, "__func__", None) is ObjectSubject.document]
    assert len(made) == documents
    assert bool(hops) is bool(documents)


@pytest.mark.parametrize(("rules", "in_thread"), [(1, False), (500, True)])
def test_policies_with_very_many_rules_are_read_in_a_thread(
    rules: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    home = threading.get_ident()

    def noted(resources: Any, **options: Any) -> Any:
        threads.append(threading.get_ident() != home)
        return read_match(resources, **options)

    async def run() -> None:
        async with LocalServer() as server:
            monkeypatch.setattr(policies, "read_match", noted)
            constraints = {"resourceRules": [rule(resourceNames=["m"])] * rules}
            deployed = policy("default", "object.metadata.name != 'm'", constraints=constraints)
            await deploy(server, deployed, binding("default"))
            answer = await server.ask("POST", MAPS.format("default"), config_map("m"))
            assert answer.code == 422
            assert threads == [in_thread]

    asyncio.run(run())


def test_rules_are_looked_through_in_short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    turns: list[int] = []
    may_match = Match.may_match

    def noted(self: Match, operation: str, resource: Resource, subresource: str) -> bool:
        if resource.plural == "configmaps":  # the status of policies is written meanwhile
            asked.append(resource.plural)
        return may_match(self, operation, resource, subresource)

    async def note_turns() -> None:
        while True:
            turns.append(len(asked))
            await asyncio.sleep(0)

    async def run() -> None:
        async with LocalServer() as server:
            for number in range(20):
                await deploy(server, policy(f"p{number}", "true"), binding(f"p{number}"))
            monkeypatch.setattr(Match, "may_match", noted)
            monkeypatch.setattr(configuration, "Pacer", lambda: Pacer(stretch=-1.0))
            noting = asyncio.create_task(note_turns())
            await server.post(MAPS.format("default"), config_map("m"))
            noting.cancel()
            assert len(asked) == 20
            assert max(after - before for before, after in pairwise(turns)) == 1

    asyncio.run(run())


@pytest.mark.parametrize("reference", [{"selector": {"matchLabels": {"a": "b"}}}, {"name": "p"}])
def test_large_params_are_read_in_a_thread(
    reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    home = threading.get_ident()
    decode, make = RawCodec.decode_stored, params._document

    def decoding(self: RawCodec, body: bytes) -> Any:
        if len(body) > LARGE:
            threads.append(threading.get_ident() != home)
        return decode(self, body)

    def making(*args: Any) -> Any:
        threads.append(threading.get_ident() != home)
        return make(*args)

    async def run() -> None:
        async with LocalServer() as server:
            kind = {"apiVersion": "v1", "kind": "ConfigMap"}
            deployed = policy("default", "params.data.k.size() > 9", paramKind=kind)
            found = {**reference, "parameterNotFoundAction": "Deny"}
            large = {"metadata": {"name": "p", "labels": {"a": "b"}}, "data": {"k": "x" * LARGE}}
            await server.post(MAPS.format("default"), large)
            await deploy(server, deployed, binding("default", paramRef=found))
            REPRESENTATIONS.discard(lambda _: True)
            monkeypatch.setattr(RawCodec, "decode_stored", decoding)
            monkeypatch.setattr(params, "_document", making)
            await server.post(MAPS.format("default"), config_map("m"))
            assert set(threads) == {True}

    asyncio.run(run())
