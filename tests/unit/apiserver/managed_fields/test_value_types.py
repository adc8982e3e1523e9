from __future__ import annotations

import pytest

from allot.apiserver.managed_fields import field_sets
from allot.apiserver.managed_fields.field_sets import key_element
from allot.apiserver.managed_fields.value_types import STRING, ListType, MapType, ValueType


def test_long_items_of_lists_are_not_remembered() -> None:
    """They may come from requests that are refused."""
    finalizers = ListType(ValueType(STRING), associative=True)
    before = field_sets.text_value_element.cache_info().currsize
    long = "x" * 1000

    assert finalizers.path_element(long) == f'v:"{long}"'
    assert field_sets.text_value_element.cache_info().currsize == before


@pytest.mark.parametrize("key", ["name", "", 'a"b', "a<b", "\u2028"])
@pytest.mark.parametrize(
    "value",
    ["", "a-1", "a.b/c:d_e", 'a"b', "a\\b", "<", "&", "é", "a\n", "\u2028", "x" * 1000, 1, None],
)
def test_an_item_is_identified_by_the_json_of_its_key(key: str, value: object) -> None:
    item = ValueType(map_=MapType(element=ValueType(STRING)))
    items = ListType(item, associative=True, keys=(key,))

    assert items.path_element({key: value, "other": "b"}) == key_element({key: value})
