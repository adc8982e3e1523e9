"""Parts that are remembered: what is read and written is the same as without, and there is an end to it."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.protobuf import memory, schema
from allot.api.protobuf.memory import ENTRY_BYTES, Memory, is_remembered
from allot.api.protobuf.reading import read
from allot.api.protobuf.schema import SCALARS
from allot.api.protobuf.targets import Target
from allot.api.protobuf.wire import ProtobufError, delimited
from allot.api.protobuf.writing import write

POD = Target("core.v1.Pod")


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    memory.READ.forget()
    memory.WRITTEN.forget()


def stored_pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "a", "image": "registry.example.com/image", "resources": {}}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": "node", "containers": [container], **spec},
        "status": {},
    }


def test_dicts_that_are_remembered_are_given_out_as_copies() -> None:
    content = write(stored_pod("x"), POD)
    first = read(content, POD)
    assert memory.READ.bytes > 0

    first["spec"]["containers"][0]["name"] = "changed"
    first["spec"]["added"] = True
    second = read(content, POD)
    second["spec"]["containers"].clear()

    assert read(content, POD)["spec"]["containers"][0]["name"] == "a"
    assert "added" not in read(content, POD)["spec"]


def test_what_is_written_follows_changes_in_place() -> None:
    pod = stored_pod("x")
    before = write(pod, POD)
    pod["spec"]["containers"][0]["image"] = "other"

    after = write(pod, POD)

    assert before != after
    assert read(after, POD)["spec"]["containers"][0]["image"] == "other"


def test_parts_are_written_once() -> None:
    for _ in range(2):
        write(stored_pod("x"), POD)
    size = memory.WRITTEN.bytes
    write(stored_pod("y"), POD)

    assert memory.WRITTEN.bytes == size > 0


def test_numbers_and_texts_are_not_the_same_part() -> None:
    limits: list[Any] = ["1", 1, "1000m", 1.5, "1500m"]
    requests = [
        {"name": "a", "resources": {"limits": {"cpu": value, "x": "1"}}} for value in limits
    ]

    again = [[write(stored_pod("x", containers=[one]), POD) for one in requests] for _ in range(2)]

    assert again[0] == again[1]
    shown = [
        read(content, POD)["spec"]["containers"][0]["resources"]["limits"]["cpu"]
        for content in again[1]
    ]
    assert shown == ["1", "1", "1", "1500m", "1500m"]


def test_large_parts_are_not_remembered() -> None:
    pod = stored_pod("x", nodeName="n" * (memory.MAX_PART_BYTES + 1))
    content = write(pod, POD)
    read(content, POD)

    # Its container is.
    assert 0 < memory.READ.bytes < memory.MAX_PART_BYTES
    assert 0 < memory.WRITTEN.bytes < memory.MAX_PART_BYTES
    assert read(content, POD)["spec"]["nodeName"] == pod["spec"]["nodeName"]


def test_many_short_parts_are_counted_each_time() -> None:
    """Two bytes make a container: what is remembered must not be a way around the limit."""
    spec = delimited(2, delimited(2, b"") * 400)
    assert len(read(spec, POD, max_parts=2000)["spec"]["containers"]) == 400
    with pytest.raises(ProtobufError, match="more than 100 parts"):
        read(spec, POD, max_parts=100)


def test_what_is_too_much_is_dropped() -> None:
    made = Memory(max_bytes=10 * ENTRY_BYTES)
    parts, others = made.of_a_type(), made.of_a_type()
    for n in range(100):
        made.keep(parts if n % 2 else others, n, str(n), 50)
        assert made.bytes <= 10 * ENTRY_BYTES + ENTRY_BYTES
        assert len(parts) + len(others) <= 10
    assert parts[99] == "99"


def test_remembered_messages_exist_and_have_no_numbers_that_json_does_not_have() -> None:
    """JSON has no infinity: such numbers would be the same part."""
    remembered = [
        message.name
        for package in schema.PACKAGES
        for message in schema.messages_in(package).values()
        if is_remembered(message.name)
    ]
    assert set(remembered) >= memory.REMEMBERED
    seen: set[str] = set()
    while remembered:
        name = remembered.pop()
        seen.add(name)
        for field in schema.message(name).fields:
            assert field.type != "double", name
            if field.type not in SCALARS and field.type not in seen:
                remembered.append(field.type)
