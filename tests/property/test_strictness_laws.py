"""The quick look for ignored fields never misses what the careful one finds."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from allot.api import scheme
from allot.api.claims import ResourceClaim
from allot.api.slices import ResourceSlice
from allot.api.strictness import strict_issues
from allot.api.v1beta1 import ResourceClaim as FlatClaim
from tests.property.strategies import instances

TYPES: list[type[Struct]] = [ResourceClaim, FlatClaim, ResourceSlice]


def plain(cls: Any, obj: Any) -> dict[str, Any]:
    body = scheme._encoder.encode(obj)
    document: dict[str, Any] = json.loads(body)
    return {"kind": cls.__name__, "apiVersion": "x", **document}


@st.composite
def documents(draw: st.DrawFn) -> tuple[Any, bytes]:
    """A document, perhaps with a field too many somewhere, or one twice, oddly written."""
    cls = draw(st.sampled_from(TYPES))
    document = plain(cls, draw(instances(cls)))
    places = _objects(document)
    for name in draw(
        st.lists(st.sampled_from(["extra", "spec", "name", 'a":b', "kind"]), max_size=2)
    ):
        place = draw(st.sampled_from(places))
        place.setdefault(name, draw(st.sampled_from([None, 1, '":', {"x": 1}])))
    indent, ascii_ = draw(st.sampled_from([None, 2])), draw(st.booleans())
    body = json.dumps(document, indent=indent, ensure_ascii=ascii_)
    doubled = draw(st.sampled_from(["", '"metadata":{},', '"spec": {},', '"spec" :{},']))
    return cls, ("{" + doubled + body.lstrip()[1:]).encode()


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(inner for item in value.values() for inner in _objects(item))]
    if isinstance(value, list):
        return [inner for item in value for inner in _objects(item)]
    return []


@given(documents())
def test_quick_and_careful_agree(case: tuple[Any, bytes]) -> None:
    cls, body = case
    careful = [
        issue
        for issue in strict_issues(body, cls, top_level=False)
        if str(issue) not in ('unknown field "kind"', 'unknown field "apiVersion"')
    ]
    assert list(map(str, strict_issues(body, cls))) == list(map(str, careful))
