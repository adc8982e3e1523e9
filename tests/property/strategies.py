"""Hypothesis strategies: API objects of any shape, well or ill."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec import Raw, Struct

from allot.api.decoding import Shape, fields_of
from allot.api.quantity import Quantity

names = st.sampled_from(["a", "b", "gpu", "gpu.example.com", "example.com/x", "r/s", "A_", ""])
texts = names | st.text(max_size=5)
small_integers = st.integers(-2, 5) | st.sampled_from([2**31 - 1, -(2**31)])
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)
quantities = st.sampled_from(["0", "1", "-1", "500m", "1Gi", "1.5", "1e3", "10E", "1n"]).map(
    Quantity.parse
)
opaque = st.sampled_from([Raw(b'{"a": 1}'), Raw(b"{}"), Raw(b'{"b":[1,{"c":null}]}')])

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of the right type for a field; whether they are valid is another question."""
    scalars: dict[str, st.SearchStrategy[Any]] = {
        "string": texts,
        "int": small_integers,
        "bool": st.booleans(),
        "time": times,
        "quantity": quantities,
        "opaque": opaque,
        "any": st.dictionaries(texts, texts, max_size=1),
    }
    if shape.cls is not None:
        found = instances(shape.cls)
    elif shape.kind == "list":
        assert shape.item
        found = st.lists(values(shape.item), max_size=2).map(tuple)
    elif shape.kind == "map":
        assert shape.item
        found = st.dictionaries(texts, values(shape.item), max_size=2)
    else:
        found = scalars[shape.kind]
    return st.none() | found if shape.optional else found


def instances(cls: type[Struct]) -> st.SearchStrategy[Any]:
    """Objects of an API type in which every field may or may not be set."""
    fields = dict(fields_of(cls).values())
    optional = {name: _later(shape) for name, shape in fields.items()}
    return st.fixed_dictionaries({}, optional=optional).map(lambda given: cls(**given))


def _later(shape: Shape) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: values(shape))
