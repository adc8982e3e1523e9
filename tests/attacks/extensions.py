"""Definitions and policies that the API accepts, and that make other requests dear."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any, Final

from tests.attacks.floods import (
    APPLY,
    CONFIG_MAPS,
    GONE,
    MERGE_PATCH,
    Flood,
    Run,
    Socket,
    encoded,
    together,
)
from tests.attacks.manifests import Manifest, collection, collection_of, config_map

GROUP: Final = "bombs.example.com"
STRING: Final = {"type": "string"}
RULES: Final = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
]


def definition(name: str, schemas: dict[str, Manifest], **spec: Any) -> Manifest:
    """Bombs of one kind, in a version for each schema; the last one is stored."""
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == list(schemas)[-1],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        }
        for version, schema in schemas.items()
    ]
    names = {"plural": f"{name}s", "singular": name, "kind": name.title()}
    names["listKind"] = f"{name.title()}List"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": versions,
            **spec,
        },
    }


def bomb(name: str, version: str, spec: Any, number: int = 0) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": name.title(),
        "metadata": {"name": f"bomb-{number}"},
        "spec": spec,
    }


def bombs_path(name: str, version: str = "v1") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/{name}s"


# --- definitions ---


def wide_schema(properties: int = 20_000) -> Manifest:
    made = {f"property{number}": STRING for number in range(properties)}
    return {"type": "object", "properties": made}


def deep_schema(depth: int = 100) -> Manifest:
    schema: Manifest = dict(STRING)
    for level in range(depth):
        schema = (
            {"type": "object", "properties": {"a": schema}}
            if level % 2
            else {"type": "array", "items": schema}
        )
    return {"type": "object", "properties": {"a": schema}}


def ruled_schema() -> Manifest:
    """Rules as dear as the API allows: each item is compared with all others."""
    items = {"type": "array", "maxItems": 300, "items": {"type": "string", "maxLength": 30}}
    rule = "self.items.all(a, self.items.exists(b, a == b + 'x' || a == b))"
    late = "self.items.map(a, a + '-').filter(b, b.startsWith('x')).size() >= 0"
    patterns = "self.items.all(a, !a.matches('^(a|aa)+$'))"
    return {
        "type": "object",
        "properties": {"items": items},
        "x-kubernetes-validations": [{"rule": each} for each in (rule, late, patterns)],
    }


def patterned_schema() -> Manifest:
    """Patterns that take long to find out that they do not match, and items that must all differ."""
    item = {
        "type": "object",
        "properties": {"key": {"type": "string", "pattern": "^(a|aa|a?a)+$"}},
        "required": ["key"],
    }
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
    }
    different = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    alternatives = [{"properties": {"kind": {"enum": [f"k{n}"]}}} for n in range(200)]
    return {
        "type": "object",
        "properties": {"keyed": keyed, "different": different, "kind": STRING},
        "anyOf": alternatives,
    }


def defaulted_schema(depth: int = 8) -> Manifest:
    """Items of items, all of them with defaults: a short object becomes a long one."""
    leaf = {f"d{number}": {"type": "string", "default": "x" * 500} for number in range(50)}
    schema: Manifest = {"type": "object", "properties": leaf}
    for _ in range(depth):
        schema = {
            "type": "object",
            "properties": {"items": {"type": "array", "items": schema}, **leaf},
        }
    return schema


def large_definitions() -> list[Manifest]:
    return [
        definition("wide", {"v1": wide_schema()}),
        definition("deep", {"v1": deep_schema()}),
        definition("many", {f"v{number}": wide_schema(150) for number in range(1, 80)}),
    ]


def many_definitions(number: int = 150) -> list[Manifest]:
    return [
        definition(f"bomb{chr(97 + n // 26)}{chr(97 + n % 26)}", {"v1": wide_schema(100)})
        for n in range(number)
    ]


def many_versions(number: int = 2_000) -> list[Manifest]:
    """One definition in very many versions, each of which discovery and OpenAPI have a document about."""
    return [
        definition("version", {f"v{version}": {"type": "object"} for version in range(1, number)})
    ]


def reading_documents(connections: int = 4) -> Run:
    """OpenAPI, discovery and definitions, again and again, while definitions change."""
    paths = (
        "/openapi/v2",
        "/openapi/v3",
        f"/openapi/v3/apis/{GROUP}/v1",
        "/apis",
        collection("CustomResourceDefinition"),
    )

    async def run(flood: Flood) -> None:
        async def read() -> None:
            async with Socket(flood) as client:
                for turn in count():
                    await client.ask("GET", paths[turn % len(paths)])

        async def change() -> None:
            path = f"{collection('CustomResourceDefinition')}/changings.{GROUP}"
            async with Socket(flood) as client:
                made = definition("changing", {"v1": wide_schema(50)})
                await client.ask("POST", collection_of(made), encoded(made))
                for turn in count():
                    names = {"shortNames": [f"c{turn % 10}"]}
                    changed = {"spec": {"names": names}}
                    await client.ask("PATCH", path, encoded(changed), MERGE_PATCH)
                    await asyncio.sleep(0.2)

        await together(flood, [change(), *(read() for _ in range(connections))])

    return run


def custom_objects() -> Run:
    """Objects for which rules, patterns, list types and defaults are dear, again and again."""
    texts = [f"{'a' * 24}{number}" for number in range(300)]
    keyed = [{"key": "a" * 40 + str(number) + "b"} for number in range(5_000)]
    nested: Any = {}
    for _ in range(7):
        nested = {"items": [nested, nested, nested, nested]}
    bodies = {
        "ruled": {"items": texts},
        "patterned": {
            "keyed": keyed,
            "different": [f"t{n}" for n in range(60_000)],
            "kind": "k199",
        },
        "defaulted": nested,
        "deep": _nested(100),
        "wide": {f"property{number}": "x" for number in range(20_000)},
    }

    async def run(flood: Flood) -> None:
        async def work(name: str, spec: Any) -> None:
            content = encoded(bomb(name, "v1", spec))
            path = bombs_path(name)
            while True:
                async with Socket(flood) as client:
                    with suppress(*GONE):
                        while True:
                            code = await client.ask("POST", path, content)
                            flood.codes[f"{name} {code}"] += 1
                            if code == "409":
                                await client.ask(
                                    "PATCH",
                                    f"{path}/bomb-0?fieldManager=x&force=true",
                                    content,
                                    APPLY,
                                )
                                await client.ask("DELETE", f"{path}/bomb-0")
                            await asyncio.sleep(0.05)
                await asyncio.sleep(0.1)

        await together(flood, (work(name, spec) for name, spec in bodies.items()))

    return run


def _nested(depth: int) -> Any:
    value: Any = "x"
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


def custom_definitions() -> list[Manifest]:
    return [
        definition("ruled", {"v1": ruled_schema()}),
        definition("patterned", {"v1": patterned_schema()}),
        definition("defaulted", {"v1": defaulted_schema()}),
        definition("deep", {"v1": deep_schema()}),
        definition("wide", {"v1": wide_schema()}),
    ]


# --- policies ---

DEAR: Final = (
    "object.data.all(k, object.data.exists(v, object.data[k] == object.data[v]))",
    "!object.data.exists(k, object.data[k].matches('^(a|aa)+$'))",
    "object.data.map(k, object.data[k] + k).filter(x, x.contains('never')).size() == 0",
)


def policies(number: int = 30, kind: str = "Validating") -> list[Manifest]:
    """Policies about ConfigMaps whose expressions go over all of their keys, again and again."""
    made: list[Manifest] = []
    for index in range(number):
        conditions = [
            {"name": f"c{each}", "expression": f"{DEAR[each % 3]} || true"} for each in range(8)
        ]
        spec: Manifest = {
            "failurePolicy": "Fail" if index % 2 else "Ignore",
            "matchConstraints": {"resourceRules": RULES},
            "matchConditions": conditions if index % 3 == 0 else [],
        }
        if kind == "Validating":
            spec["validations"] = [
                {"expression": f"{each} || {index} >= 0"} for each in DEAR for _ in range(5)
            ]
        else:
            value = 'object.data.map(k, object.data[k]).join("")'
            operation = f'JSONPatch{{op: "add", path: "/data/p{index}", value: {value}}}'
            patch = f"[{operation}]"
            spec["reinvocationPolicy"] = "IfNeeded"
            spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
        metadata = {"name": f"bomb-{index}"}
        version = "admissionregistration.k8s.io/v1"
        made.append(
            {
                "apiVersion": version,
                "kind": f"{kind}AdmissionPolicy",
                "metadata": metadata,
                "spec": spec,
            }
        )
        bound: Manifest = {"policyName": f"bomb-{index}"}
        if kind == "Validating":
            bound["validationActions"] = ["Deny"]
        made.append(
            {
                "apiVersion": version,
                "kind": f"{kind}AdmissionPolicyBinding",
                "metadata": metadata,
                "spec": bound,
            }
        )
    return made


def long_policy(size: int = 400_000) -> Manifest:
    """One expression as long as an object may be."""
    expression = " || ".join(f"object.metadata.name == 'n{number}'" for number in range(size // 40))
    found = policies(1)[0]
    found["metadata"]["name"] = "long"
    found["spec"]["validations"] = [{"expression": expression}]
    return found


def writing_maps(keys: int = 200, *extra: Manifest) -> Run:
    """ConfigMaps that policies and webhooks are about; and objects that are created and deleted again."""

    async def run(flood: Flood) -> None:
        data = {f"k{number}": "a" * 40 + str(number) for number in range(keys)}

        async def work(index: int) -> None:
            body = encoded(config_map(f"written-{index}", data))
            while True:
                async with Socket(flood) as client:
                    with suppress(*GONE):
                        while True:
                            await client.ask("POST", CONFIG_MAPS, body)
                            await client.ask("DELETE", f"{CONFIG_MAPS}/written-{index}")
                flood.codes["hung up"] += 1
                await asyncio.sleep(0.1)

        async def again(manifest: Manifest) -> None:
            path = collection_of(manifest)
            async with Socket(flood) as client:
                while True:
                    flood.codes[f"extra {await client.ask('POST', path, encoded(manifest))}"] += 1
                    await client.ask("DELETE", f"{path}/{manifest['metadata']['name']}")
                    await asyncio.sleep(0.2)

        await together(
            flood, [*(work(index) for index in range(4)), *(again(each) for each in extra)]
        )

    return run
