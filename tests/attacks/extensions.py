"""Definitions, policies and webhooks that the API accepts, and that make other requests dear."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.attacks.floods import (
    APPLY,
    CONFIG_MAPS,
    GONE,
    JSON,
    MAX_BODY,
    MERGE_PATCH,
    Flood,
    Run,
    Socket,
    encoded,
    together,
)
from tests.attacks.manifests import Manifest, collection, collection_of, config_map
from tests.conformance.admission_webhook import make_certificates

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


# --- webhooks ---

Reply = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


async def _answer(
    writer: asyncio.StreamWriter, body: bytes, code: str = "200 OK", more: str = ""
) -> None:
    head = f"HTTP/1.1 {code}\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _allowed(asked: bytes, patch: bytes = b"", **more: Any) -> bytes:
    review = json.loads(asked)
    response = {"uid": review["request"]["uid"], "allowed": True, **more}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    return encoded(
        {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    )


async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _asked: bytes) -> None:
    await asyncio.sleep(60)


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes) -> None:
    """An answer that comes byte by byte."""
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-length: 100000\r\n\r\n".encode()
    )
    for _ in range(600):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.1)


async def flood_back(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    """An answer without an end."""
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n".encode())
    for _ in range(1000):
        writer.write(b'{"a":' * 20_000)
        await writer.drain()


async def small_chunks(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    """Three megabytes in pieces of one byte each."""
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )
    for _ in range(300):
        writer.write(b"1\r\n[\r\n" * 10_000)
        await writer.drain()


async def redirect(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    await _answer(writer, b"", "307 Temporary Redirect", "location: /\r\n")


async def large_patch(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """As many operations as an answer may hold."""
    operations = [
        {"op": "add", "path": f"/data/p{number}", "value": "v"} for number in range(30_000)
    ]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def copying_patch(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """Operations that double the object again and again."""
    operations = [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(40)]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def growing(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """Every call changes the object, so that all others are to be called again."""
    name = "/metadata/annotations"
    operations = [{"op": "add", "path": name, "value": {"n": str(id(asked)) * 100}}]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def deep_answer(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    await _answer(writer, b"[" * (MAX_BODY - 100))


async def many_warnings(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    warnings = ["w" * 100 for _ in range(20_000)]
    notes = {f"key{number}": "x" * 20 for number in range(10_000)}
    await _answer(writer, _allowed(asked, warnings=warnings, auditAnnotations=notes))


REPLIES: Final[tuple[Reply, ...]] = (
    hang,
    drip,
    flood_back,
    small_chunks,
    redirect,
    large_patch,
    copying_patch,
    growing,
    deep_answer,
    many_warnings,
)


class HostileServer:
    """Webhooks on loopback; the path says how each behaves."""

    def __init__(self) -> None:
        self.url = ""
        self.ca = ""

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[HostileServer]:
        server = cls()
        with tempfile.TemporaryDirectory() as directory:
            listener = await server._start(Path(directory))
        try:
            yield server
        finally:
            listener.close()

    async def _start(self, directory: Path) -> asyncio.Server:
        ca, both = make_certificates(directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.ca = base64.b64encode(ca).decode()
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            asked = await reader.readexactly(length)
            index = int(head.split(b" ")[1].rsplit(b"/", 1)[1].split(b"?")[0])
            await REPLIES[index](reader, writer, asked)
        except GONE:
            pass
        finally:
            writer.transport.abort()


def webhooks(server: HostileServer, *replies: Reply) -> list[Manifest]:
    """A configuration for each way to behave; only the growing ones are called one after the other."""
    made = []
    for reply in replies:
        index = REPLIES.index(reply)
        is_mutating = reply in (large_patch, copying_patch, growing)
        hooks = [
            {
                "name": f"h{number}.{GROUP}",
                "clientConfig": {"url": f"{server.url}/{index}", "caBundle": server.ca},
                "rules": RULES,
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 2,
                **({"reinvocationPolicy": "IfNeeded"} if is_mutating else {}),
            }
            for number in range(8)
        ]
        kind = f"{'Mutating' if is_mutating else 'Validating'}WebhookConfiguration"
        made.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": reply.__name__.replace("_", "-")},
                "webhooks": hooks,
            }
        )
    return made


def hostile_webhooks(*replies: Reply, keys: int = 500) -> Run:
    async def run(flood: Flood) -> None:
        async with HostileServer.running() as server:
            async with Socket(flood) as client:
                for each in webhooks(server, *replies):
                    code = await client.ask("POST", collection_of(each), encoded(each))
                    flood.codes[f"webhook {code}"] += 1
            await writing_maps(keys)(flood)

    return run


def hostile_conversion() -> Run:
    """Objects in two versions whose conversion hangs, floods or lies."""

    async def run(flood: Flood) -> None:
        async with HostileServer.running() as server:
            async with Socket(flood) as client:
                for reply in (hang, flood_back, deep_answer, drip, small_chunks):
                    name = f"c{reply.__name__.replace('_', '')}"
                    index = REPLIES.index(reply)
                    config = {"url": f"{server.url}/{index}", "caBundle": server.ca}
                    conversion = {
                        "strategy": "Webhook",
                        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
                    }
                    made = definition(
                        name, {"v2": wide_schema(5), "v1": wide_schema(5)}, conversion=conversion
                    )
                    code = await client.ask("POST", collection_of(made), encoded(made))
                    flood.codes[f"definition {code}"] += 1
                    for number in range(50):
                        spec = {"property1": "x" * 10_000}
                        body = encoded(bomb(name, "v1", spec, number))
                        for _ in range(50):
                            if await client.ask("POST", bombs_path(name), body) != "404":
                                break
                            await asyncio.sleep(0.1)

            async def read(name: str) -> None:
                while True:
                    async with Socket(flood) as client:
                        with suppress(*GONE):
                            while True:
                                await client.ask("GET", bombs_path(name, "v2"))
                                await client.ask("GET", f"{bombs_path(name, 'v2')}/bomb-1")
                    await asyncio.sleep(0.1)

            names = ("chang", "cfloodback", "cdeepanswer", "cdrip", "csmallchunks")
            await together(flood, (read(name) for name in names for _ in range(10)))

    return run
