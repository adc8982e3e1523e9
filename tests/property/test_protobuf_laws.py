"""Laws of protobuf: every kind survives the way from JSON and back, and no bytes do any harm."""

from __future__ import annotations

import base64
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import scheme
from allot.api.decoding import to_builtin
from allot.api.identities import GroupVersionKind
from allot.api.protobuf import schema
from allot.api.protobuf.envelope import decode_document, open_envelope, target_of
from allot.api.protobuf.reading import read
from allot.api.protobuf.schema import SCALARS, Field
from allot.api.protobuf.targets import Target
from allot.api.protobuf.wire import ProtobufError
from allot.api.protobuf.writing import write, write_json
from allot.api.resource import GROUP

KINDS = [
    message.name
    for package in schema.PACKAGES
    for message in schema.messages_in(package).values()
    if message.is_kind
]
NUMBERS = ("int32", "int64", "bool")
TEXTS = ("", "a", "b-c.d", "ünï", "☃", "x" * 200, "\U0001f680", "<&>", '"')
QUANTITIES = ("0", "1", "500m", "80Gi", "-3", "1e3", "1500m", "7k")


class Documents:
    """Random documents, as Go would write them in JSON."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311

    def of(self, name: str, depth: int = 0) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for field in schema.message(name).fields:
            if not field.name:
                document |= self.of(field.type, depth + 1)
            elif self._is_always_there(field):
                document[field.name] = self._value(field, depth)
            elif self._random.random() < 0.6 / (1 + depth):
                value = self._some(field, depth)
                if value or field.pointer or field.container:
                    document[field.name] = value
        return document

    def _is_always_there(self, field: Field) -> bool:
        if field.container or field.pointer or field.omitted:
            return False
        return field.type in ("string", "intstr", "quantity", *NUMBERS) or field.type not in SCALARS

    def _some(self, field: Field, depth: int) -> Any:
        many = range(self._random.randint(1, 3))
        if field.container == "list":
            return [self._value(field, depth) for _ in many]
        if field.container == "map":
            return {self._random.choice(TEXTS): self._value(field, depth) for _ in many}
        return self._value(field, depth)

    def _value(self, field: Field, depth: int) -> Any:
        random = self._random
        match field.type:
            case "string":
                return random.choice(TEXTS)
            case "bytes":
                return base64.b64encode(random.randbytes(random.randint(0, 4))).decode()
            case "bool":
                return random.random() < 0.5
            case "int32":
                return random.choice((0, 1, -1, 127, 128, 2**31 - 1, -(2**31)))
            case "int64":
                return random.choice((0, 1, -1, 300, 2**63 - 1, -(2**63)))
            case "double":
                return random.choice((0, 1.5, -2.25, 1e300))
            case "time":
                return self._time().strftime("%Y-%m-%dT%H:%M:%SZ")
            case "microtime":
                return f"{self._time().replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
            case "quantity":
                return random.choice(QUANTITIES)
            case "intstr":
                return random.choice((0, -1, 2**31 - 1, "", "25%"))
            case "raw" | "fields":
                return random.choice(({"a": [1, None, {"b": "c"}]}, {}, {"f:x": {".": {}}}))
            case "strings" | "schema-or-strings":
                return ["a", ""]
            case "schema-or-bool":
                return random.choice((True, False, {"type": "string"}))
            case "schema-or-schemas":
                return random.choice(({"type": "string"}, [{"type": "string"}, {"type": "null"}]))
            case message:
                return self.of(message, depth + 1)

    def _time(self) -> datetime:
        start = datetime(1900, 1, 1, tzinfo=UTC)
        return start + timedelta(microseconds=self._random.randrange(2 * 10**16))


@pytest.mark.parametrize("name", KINDS)
def test_documents_survive(name: str) -> None:
    for seed in range(15):
        document = Documents(seed).of(name)

        content = write(document, Target(name))
        found = read(content, Target(name))

        assert found == document
        assert write(found, Target(name)) == content
        # Once more, with what is remembered.
        assert read(content, Target(name)) == document
        body = msgspec.json.encode(document)
        assert write_json(body, Target(name), "") == content
        assert write_json(body, Target(name), "") == content


DRA_KINDS = [
    (kind.name, version)
    for kind in scheme.KINDS.values()
    for version in kind.versions
    if schema.message_of(GroupVersionKind(GROUP, version, kind.name)) is not None
]


@pytest.mark.parametrize(("kind", "version"), DRA_KINDS)
def test_structs_say_the_same_as_documents(kind: str, version: str) -> None:
    gvk = GroupVersionKind(GROUP, version, kind)
    documents = target_of(gvk)
    structs = target_of(gvk, scheme.lookup(gvk)[1].cls)
    for seed in range(50):
        content = write(Documents(seed).of(documents.message), documents)

        obj = read(content, structs)
        assert write(obj, structs) == content
        assert read(content, structs) == obj
        stored = msgspec.json.encode(obj, enc_hook=to_builtin)
        assert write_json(stored, documents, "") == content


@settings(max_examples=400)
@given(st.binary(max_size=60), st.sampled_from(KINDS))
def test_random_bytes_are_read_or_refused(data: bytes, name: str) -> None:
    _read_or_refuse(data, Target(name))


@pytest.mark.parametrize(("kind", "version"), DRA_KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_are_read_or_refused(kind: str, version: str, seed: int) -> None:
    random = Random(seed)  # noqa: S311
    gvk = GroupVersionKind(GROUP, version, kind)
    targets = (target_of(gvk), target_of(gvk, scheme.lookup(gvk)[1].cls))
    whole = write(Documents(seed).of(targets[0].message), targets[0])
    for _ in range(100):
        content = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(content))
            content[place : place + random.randint(0, 2)] = random.randbytes(random.randint(0, 2))
        for target in targets:
            _read_or_refuse(bytes(content), target)


@settings(max_examples=300)
@given(st.binary(max_size=40).map(lambda data: b"k8s\0" + data))
def test_random_envelopes_are_opened_or_refused(body: bytes) -> None:
    with suppress(ProtobufError):
        open_envelope(body)
        decode_document(body)


def _read_or_refuse(content: bytes, target: Target) -> None:
    try:
        found = read(content, target)
    except ProtobufError:
        return
    # What can be read can be written, and says the same again.
    assert read(write(found, target), target) == found or target.cls is not None
