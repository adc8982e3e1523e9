from __future__ import annotations

from allot.apiserver.managed_fields import field_sets
from allot.apiserver.managed_fields.value_types import STRING, ListType, MapType, ValueType


def test_long_items_of_lists_are_not_remembered() -> None:
    """They may come from requests that are refused."""
    text = ValueType(STRING)
    finalizers = ListType(text, associative=True)
    containers = ListType(ValueType(map_=MapType(element=text)), associative=True, keys=("name",))
    caches = (field_sets.text_value_element, field_sets.text_key_element)
    before = [each.cache_info().currsize for each in caches]
    long = "x" * 1000

    assert finalizers.path_element(long) == f'v:"{long}"'
    assert containers.path_element({"name": long}) == f'k:{{"name":"{long}"}}'
    assert [each.cache_info().currsize for each in caches] == before
