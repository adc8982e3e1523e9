"""Values that Go does not write. Looking for them in a body does not depend on how long its texts are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allot.api.identities import GroupVersionKind
from allot.apiserver.kinds.resources import RESOURCES
from allot.apiserver.schemas.empty_values import MAX_NAME, _empty_values, without_empty_values
from allot.apiserver.schemas.types import reachable, type_of


def test_a_long_word_is_not_read_to_its_end() -> None:
    assert _empty_values.findall(b'{"%b":[]}' % (b"a" * (MAX_NAME + 1))) == []
    assert _empty_values.findall(b'{"%b" : [ ],"b":{}}' % (b"a" * MAX_NAME)) == [
        b"a" * MAX_NAME,
        b"b",
    ]


def test_names_of_fields_are_shorter() -> None:
    types = [
        found.name
        for resource in RESOURCES
        for version in resource.versions
        if (found := type_of(resource.gvk(version))) is not None
    ]
    names = {name for type_ in reachable(types).values() for name in type_.fields}
    assert len(names) > 500
    assert max(map(len, names)) < MAX_NAME


def test_empty_values_are_left_out() -> None:
    body = b'{"data":{ },"metadata":{"name":"m","labels":{}}}'
    data = {"data": {}, "metadata": {"name": "m", "labels": {}}}
    found = without_empty_values(data, body, GroupVersionKind("", "v1", "ConfigMap"))
    assert found == {"metadata": {"name": "m"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"tty": False, "workingDir": ""}, {}, id="values"),
        pytest.param({"ports": [{"hostPort": 0}]}, {"ports": [{}]}, id="a-number"),
        pytest.param({"ports": []}, {}, id="a-list-of-an-inlined-struct"),
        pytest.param({"restartPolicy": ""}, {"restartPolicy": ""}, id="a-pointer"),
        pytest.param({"resources": {}}, {"resources": {}}, id="a-struct"),
        pytest.param({"name": ""}, {"name": ""}, id="always-written"),
    ],
)
def test_zeros_are_left_out(given: dict[str, Any], expected: dict[str, Any]) -> None:
    kind = GroupVersionKind("", "v1", "Pod")
    for field in ("containers", "initContainers"):
        data = {"spec": {field: [given]}}
        found = without_empty_values(data, msgspec.json.encode(data), kind)
        assert found == {"spec": {field: [expected]}}


def test_what_is_refused_if_set_stays() -> None:
    container = {"ports": [], "tty": False, "resources": {"limits": {}}}
    data = {"spec": {"ephemeralContainers": [container], "overhead": {}, "nodeSelector": {}}}
    kind = GroupVersionKind("", "v1", "Pod")

    found = without_empty_values(data, msgspec.json.encode(data), kind)

    kept = {"ports": [], "resources": {"limits": {}}}
    assert found == {"spec": {"ephemeralContainers": [kept], "overhead": {}}}


@pytest.mark.parametrize("value", [b"0.5", b"01", b"0e1", b"-0.1"])
def test_numbers_that_only_begin_with_zero_are_others(value: bytes) -> None:
    assert _empty_values.search(b'{"hostPort":%b}' % value) is None
