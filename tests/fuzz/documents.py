"""Random documents: nearly right objects of a kind, made from its schema, and bytes that are nearly JSON or YAML."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any, Final

import yaml

from allot.api.identities import GroupVersionKind
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import type_named, type_of

NAMES: Final = ("a", "b", "c", "d-1", "gpu.example.com", "x" * 63)
BAD_NAMES: Final = (
    "",
    "A",
    "a b",
    "a/b",
    "..",
    "a=b",
    "é",
    "\x00",
    "x" * 300,
    "\ud800",
    "%2f",
    "-",
)
TEXTS: Final = (
    "", "a", "v1", "true", "null", "0", "1e3", "a b", "é", "\u2028", "\x00", "x" * 300, "a/b", "a.b/c", "=", "-",
    "1Gi", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", "9999-99-99T00:00:00Z", "device.driver == 'a'",
    "device.attributes['a'].b", "lists.range(3).all(x, x > 0)", "[", "(?i", "0x_", "$(A)", "{{", "~1", "Always",
    "NoSchedule", "Exists", "In", "ExactCount", "All", "ClusterIP", "*/5 * * * *", "10.0.0.1", "::1", "Ψ" * 70,
)  # fmt: skip
NUMBERS: Final = (
    0,
    1,
    -1,
    2,
    7,
    80,
    65536,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    10**25,
)
QUANTITIES: Final = (
    "0",
    "1",
    "10Gi",
    "1.5",
    "-1",
    "1e3",
    "100m",
    "1n",
    "",
    "x",
    "1" * 40,
    "1e99999",
    ".",
    "+",
)
TIMES: Final = (
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456Z",
    "0001-01-01T00:00:00Z",
    "now",
    "",
)
ANYTHING: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e300,
    "",
    "text",
    [],
    {},
    [None],
    {"a": None},
    [[]],
    {"": 0},
)
DEPTH: Final = 6


class Documents:
    """Makes documents of kinds, each time another one."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._is_careful = False
        """Whether objects are to be right as far as the schema can tell."""

    def of(self, resource: Resource, version: str, name: str, namespace: str) -> Any:
        """An object of a resource, mostly with a place and all that is required."""
        gvk = resource.gvk(version)
        self._is_careful = self._rarely(0.6)
        document = self.of_kind(gvk)
        self._is_careful = False
        if self._rarely(0.03):
            return document
        document |= {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            metadata = document["metadata"] = {}
        metadata["name"] = name
        if resource.namespaced:
            metadata["namespace"] = namespace
        for field in ("resourceVersion", "uid", "generateName"):
            if self._rarely(0.9):
                metadata.pop(field, None)
        return document

    def of_kind(self, gvk: GroupVersionKind) -> dict[str, Any]:
        schema = type_of(gvk)
        return self._object(schema, DEPTH) if schema is not None else {"spec": self.anything()}

    def anything(self, depth: int = 3) -> Any:
        """JSON of any shape."""
        random = self._random
        match random.randrange(6 if depth else 4):
            case 4:
                return [self.anything(depth - 1) for _ in range(random.randrange(4))]
            case 5:
                return {self.text(): self.anything(depth - 1) for _ in range(random.randrange(4))}
            case 3:
                return self.text()
        return deepcopy(random.choice(ANYTHING))  # patches add directives in place

    def text(self) -> str:
        return self._random.choice(TEXTS)

    def patch_of(self, gvk: GroupVersionKind) -> Any:
        """Part of an object, with directives in it."""
        part = self.of_kind(gvk)
        self._with_directives(part, 4)
        return part

    def operations(self) -> Any:
        """A JSON patch."""
        random = self._random
        paths = (
            "", "/", "/metadata", "/metadata/labels", "/metadata/labels/a~1b", "/metadata/name", "/spec", "/data/k",
            "/spec/devices/requests/0", "/spec/devices/requests/-", "/spec/containers/0/name", "/status", "/kind",
            "/metadata/finalizers/-", "/a~2", "x", "/spec/devices/requests/01", "/metadata/annotations/a", "/zz/0/0",
        )  # fmt: skip
        operations: list[Any] = []
        for _ in range(random.randrange(6)):
            operation: Any = {
                "op": random.choice(
                    ("add", "remove", "replace", "move", "copy", "test", "jump", 1, None)
                ),
                "path": random.choice((*paths, 1, None))
                if self._rarely(0.1)
                else random.choice(paths),
                "from": random.choice(paths),
                "value": self.anything(),
            }
            for field in ("from", "value", "path"):
                if self._rarely(0.1):
                    operation.pop(field, None)
            operations.append(self.anything() if self._rarely(0.05) else operation)
        return operations

    # --- bytes ---

    def encoded(self, value: Any, *, as_yaml: bool = False) -> bytes:
        """The document as text, sometimes damaged."""
        if as_yaml:
            text = yaml.dump(_printable(value), Dumper=yaml.CSafeDumper).encode(errors="replace")
        else:
            text = json.dumps(value, ensure_ascii=self._rarely(0.5)).encode(errors="replace")
        return self.damaged(text) if self._rarely(0.12) else text

    def damaged(self, text: bytes) -> bytes:
        random = self._random
        for _ in range(random.randint(1, 3)):
            at, to = sorted(random.randint(0, len(text)) for _ in range(2))
            match random.randrange(6):
                case 0:
                    text = text[:at] + bytes([random.randrange(256)]) + text[at + 1 :]
                case 1:
                    text = text[:at] + random.choice(_FRAGMENTS) + text[at:]
                case 2:
                    text = text[:at]
                case 3:
                    text = text[:at] + text[to:]
                case 4:
                    text = text[:to] + text[at:to][:200] + text[to:]
                case 5:
                    text = text.replace(
                        b'"', random.choice((b'"\xff', b"'", b'"\\ud800', b'"\\u0000')), 1
                    )
        return text

    def garbage(self) -> bytes:
        random = self._random
        if self._rarely(0.5):
            return random.choice(_FRAGMENTS) * random.choice((1, 2, 300))
        return random.randbytes(random.randrange(60))

    # --- values of fields ---

    def _object(self, schema: Type, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, field in schema.fields.items():
            wanted = 0.85 if field.required else 0.25 if depth > DEPTH - 3 else 0.1
            if self._is_careful:
                wanted = 1.0 if field.required or name in ("spec", "template") else wanted / 3
            if depth and self._random.random() < wanted:
                found[name] = self._field(field, depth - 1)
        if self._rarely(0.02) and not self._is_careful:
            found[self.text()] = self.anything()
        return found

    def _field(self, field: Field, depth: int) -> Any:
        if self._rarely(0.02) and not self._is_careful:
            return self.anything()
        if field.container == "list":
            count = 1 if self._is_careful else self._random.randrange(3)
            return [self._value(field, depth) for _ in range(count)]
        if field.container == "map":
            return {
                self._key(): self._value(field, depth) for _ in range(self._random.randrange(3))
            }
        return self._value(field, depth)

    def _key(self) -> str:
        return (
            self.text()
            if self._rarely(0.3) and not self._is_careful
            else self._random.choice(NAMES)
        )

    def _value(self, field: Field, depth: int) -> Any:
        random = self._random
        if field.is_type:
            return self._object(type_named(field.type), depth)
        if field.enum and not self._rarely(0.1):
            return random.choice(field.enum)
        if self._is_careful and field.type in _CAREFUL:
            return random.choice(_CAREFUL[field.type])
        match field.type:
            case "string":
                return random.choice(NAMES) if self._rarely(0.5) else self.text()
            case "integer":
                return random.choice(NUMBERS)
            case "number":
                return random.choice((*NUMBERS, 0.5, -1e9))
            case "boolean":
                return self._rarely(0.5)
            case "quantity":
                return random.choice((*QUANTITIES, 1, 0.5))
            case "time" | "microtime":
                return random.choice(TIMES)
            case "int-or-string":
                return random.choice((*NUMBERS, "50%", "x", ""))
            case "bytes":
                return random.choice(("", "YQ==", "YQ", "!", "a" * 99))
            case "strings":
                return [self.text() for _ in range(random.randrange(3))]
        return self.anything()

    def _with_directives(self, value: Any, depth: int) -> None:
        if not depth:
            return
        if isinstance(value, dict):
            for inner in list(value.values()):
                self._with_directives(inner, depth - 1)
            if self._rarely(0.1):
                value["$patch"] = self._random.choice(
                    ("merge", "replace", "delete", "other", 1, None)
                )
            if self._rarely(0.1):
                value["$retainKeys"] = self._random.choice((list(value), [], [1], "a", None))
            for name in list(value):
                if self._rarely(0.05):
                    value[f"$setElementOrder/{name}"] = self.anything()
                if self._rarely(0.05):
                    value[f"$deleteFromPrimitiveList/{name}"] = self.anything()
        elif isinstance(value, list):
            for inner in value:
                self._with_directives(inner, depth - 1)
            if self._rarely(0.1):
                value.append({"$patch": self._random.choice(("delete", "replace", "other"))})

    def _rarely(self, chance: float) -> bool:
        return self._random.random() < chance


_CAREFUL: Final[dict[str, tuple[Any, ...]]] = {
    "string": NAMES[:5],
    "integer": (1, 2, 80),
    "quantity": ("1", "10Gi"),
    "time": TIMES[:1],
    "microtime": TIMES[1:2],
    "int-or-string": (1, "50%"),
    "bytes": ("YQ==",),
    "any": ({"a": 1}, {}),
}
_FRAGMENTS: Final = (
    b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"null", b"1e999",
    b"-", b"9" * 500, b"0x_", b"-0b_", b"&a [*a]", b"*a", b"<<: ", b"!!binary x", b"? ", b"---\n", b"\t", b"%", b"'", b"|-\n",
    b"a: 0o_\n", b"{a: b, a: c}", b"\\ud83d", b"\\u0000", b"1.0", b"NaN", b".inf", b"~", b"!x y", b'{"\xff":1}', b"=\n",
)  # fmt: skip


def _printable(value: Any) -> Any:
    """PyYAML writes no lone surrogates."""
    match value:
        case dict():
            return {_printable(key): _printable(inner) for key, inner in value.items()}
        case list():
            return [_printable(inner) for inner in value]
        case str():
            return value.encode(errors="replace").decode()
    return value
