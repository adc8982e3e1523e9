"""Built-in admission plugins work on large objects in threads, also if only the product of two objects is large."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.apiserver.admission import escalation, limit_ranger, resource_quota, runtime_classes
from allot.apiserver.admission.runtime_classes import with_runtime_class
from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.apiserver.registry.write_pipeline import WritePipeline
from allot.testing.servers import LocalServer
from tests.step_counts import counted, steps

CORE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Step = tuple[str, str, dict[str, Any]]


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def a_pod(containers: int, **spec: Any) -> dict[str, Any]:
    made = [{"name": f"c{number}", "image": "i"} for number in range(containers)]
    return named("p", spec={"containers": made, **spec})


def a_range(names: int) -> Step:
    limits = {f"a.b/{number}": "1" for number in range(names)}
    item = {"type": "Container", "defaultRequest": limits, "default": limits}
    return "POST", f"{CORE}/limitranges", named("r", spec={"limits": [item]})


def a_class(count: int) -> Step:
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]
    scheduling = {"tolerations": tolerations}
    made = named("r", handler="h", scheduling=scheduling)
    return "POST", "/apis/node.k8s.io/v1/runtimeclasses", made


def a_quota(entries: int) -> list[Step]:
    hard = {"pods": "9", **{f"count/r{number}.g": "1" for number in range(entries)}}
    quota = named("q", spec={"hard": hard})
    counted_quota = {**quota, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    path = f"{CORE}/resourcequotas"
    return [("POST", path, quota), ("PUT", f"{path}/q/status", counted_quota)]


def a_role(rules: int) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    return named("r", rules=[rule] * rules)


OF_ALICE: list[Step] = [
    (
        "POST",
        f"{RBAC}/clusterroles",
        named(
            "own",
            rules=[
                {
                    "apiGroups": ["rbac.authorization.k8s.io"],
                    "resources": ["roles"],
                    "verbs": ["create"],
                },
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
            ],
        ),
    ),
    (
        "POST",
        f"{RBAC}/clusterrolebindings",
        named(
            "alice",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "own"},
            subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        ),
    ),
]


@pytest.mark.parametrize(
    ("place", "function", "before", "path", "body", "in_thread"),
    [
        pytest.param(
            limit_ranger, "with_default_resources", [a_range(2)], "pods", a_pod(2), False,
            id="few-defaults",
        ),
        pytest.param(
            limit_ranger, "with_default_resources", [a_range(300)], "pods", a_pod(100), True,
            id="many-defaults",
        ),
        pytest.param(
            limit_ranger, "pod_problems", [a_range(300)], "pods", a_pod(3), True,
            id="filled-pod",
        ),
        pytest.param(
            runtime_classes, "with_runtime_class", [a_class(3)], "pods",
            a_pod(1, runtimeClassName="r"), False, id="class",
        ),
        pytest.param(
            runtime_classes, "with_runtime_class", [a_class(1000)], "pods",
            a_pod(1, runtimeClassName="r"), True, id="large-class",
        ),
        pytest.param(
            resource_quota, "_charged", a_quota(3), "pods", a_pod(1), False, id="quota"
        ),
        pytest.param(
            resource_quota, "_charged", a_quota(2000), "pods", a_pod(1), True, id="large-quota"
        ),
        pytest.param(
            resource_quota, "Charge", a_quota(3), "pods", a_pod(1000), True, id="large-pod"
        ),
        pytest.param(
            escalation, "escalation_problem", OF_ALICE, "roles", a_role(3), False, id="role"
        ),
        pytest.param(
            escalation, "escalation_problem", OF_ALICE, "roles", a_role(1000), True, id="large-role"
        ),
    ],
)  # fmt: skip
def test_admission_works_where_it_belongs(
    place: Any,
    function: str,
    before: list[Step],
    path: str,
    body: dict[str, Any],
    in_thread: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []
    plain = getattr(place, function)

    def noticing(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(place, function, noticing)

    async def run() -> int:
        users = {"alice": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(users=users) as server:
            for method, where, document in before:
                assert (await server.ask(method, where, document)).code < 300
            threads.clear()
            is_role = path == "roles"
            answer = await server.ask(
                "POST",
                f"{RBAC}/namespaces/default/roles" if is_role else f"{CORE}/{path}",
                body,
                headers={"authorization": "Bearer alice"} if is_role else None,
            )
            return answer.code

    assert asyncio.run(run()) in (201, 422)  # too many defaults make an annotation that is too long
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


@pytest.mark.parametrize(
    ("before", "in_thread"),
    [
        pytest.param([a_range(1)], False, id="little"),
        pytest.param([a_range(300)], True, id="by-a-limit-range"),
        pytest.param([a_class(1000)], True, id="by-a-runtime-class"),
    ],
)
def test_a_pod_that_has_grown_is_validated_in_a_thread(
    before: list[Step], in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    plain = WritePipeline.create

    def noticing(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(WritePipeline, "create", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            for method, where, document in before:
                assert (await server.ask(method, where, document)).code == 201
            threads.clear()
            more = {"runtimeClassName": "r"} if "runtimeclasses" in before[0][1] else {}
            answer = await server.ask("POST", f"{CORE}/pods", a_pod(4, **more))
            assert answer.code == 201

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


def test_tolerations_of_a_class_are_looked_up() -> None:
    def merge(count: int) -> RawObject:
        own = counted([{"key": f"a{number}"} for number in range(count)])
        wanted = counted([{"key": f"b{number}"} for number in range(count)])
        pod = RawObject({"metadata": {"name": "p"}, "spec": {"tolerations": own}})
        return with_runtime_class(pod, RawObject({"scheduling": {"tolerations": wanted}}))

    assert len(merge(50).get("spec", "tolerations")) == 100
    assert steps(lambda: merge(200)) < 2.5 * steps(lambda: merge(100))
