"""Looking for empty lists and maps in a body does not depend on how long its texts are."""

from __future__ import annotations

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
