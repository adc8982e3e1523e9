from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.object_store import ObjectStore


def config_map(name: str, version: int = 1, **labels: str) -> RawObject:
    metadata = {"namespace": "ns", "name": name, "resourceVersion": str(version), "labels": labels}
    return RawObject({"metadata": metadata})


def key(name: str) -> ObjectKey:
    return ObjectKey("ns", name)


def put(store: ObjectStore[RawObject], obj: RawObject) -> None:
    store.put(obj.key, obj)


def test_an_index_is_built_when_it_is_first_asked_for_and_kept_from_then_on() -> None:
    asked: list[str] = []

    def label(obj: RawObject) -> list[str]:
        asked.append(obj.metadata.name)
        return list(obj.metadata.labels.values())

    store: ObjectStore[RawObject] = ObjectStore({})
    store.add_index("label", label)
    put(store, config_map("a", x="1", y="2"))
    put(store, config_map("b", x="1"))
    assert asked == []
    assert store.keys_by_index("label", "1") == [key("a"), key("b")]
    assert asked == ["a", "b"]
    put(store, config_map("a", 2, x="3", y="2"))
    assert asked == ["a", "b", "a"]
    assert [obj.key for obj in store.by_index("label", "1")] == [key("b")]
    assert set(store.index_values("label")) == {"1", "2", "3"}
    store.drop(key("a"))
    assert set(store.index_values("label")) == {"1"}
    assert len(asked) == 3


def test_an_index_shows_the_newest_version_of_an_object() -> None:
    store: ObjectStore[RawObject] = ObjectStore({"all": lambda _: ("x", "x")})
    put(store, config_map("a"))
    newer = config_map("a", 2)
    put(store, newer)
    assert store.by_index("all", "x") == [newer]
    store.drop(key("a"))
    assert store.by_index("all", "x") == []


def test_an_object_that_an_index_fails_for_is_left_out_until_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def label(obj: RawObject) -> tuple[str, ...]:
        return (obj.metadata.labels["x"],)

    store: ObjectStore[RawObject] = ObjectStore({})
    store.add_index("label", label)
    put(store, config_map("bad"))
    put(store, config_map("good", x="1"))
    assert store.keys_by_index("label", "1") == [key("good")]
    assert "ns/bad: the function of index label failed" in caplog.text
    put(store, config_map("bad", 2, x="1"))
    assert store.keys_by_index("label", "1") == [key("good"), key("bad")]


def test_an_index_that_was_not_added_cannot_be_asked_for() -> None:
    store: ObjectStore[RawObject] = ObjectStore({})
    with pytest.raises(KeyError):
        store.by_index("label", "1")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.lists(st.sampled_from("xyz"), max_size=3)),
        max_size=20,
    )
)
def test_an_index_has_what_its_function_gives(steps: list[tuple[str, list[str] | None]]) -> None:
    """Against a model that looks at all objects. None drops an object."""
    store: ObjectStore[list[str]] = ObjectStore({"values": lambda values: values})
    model: dict[ObjectKey, list[str]] = {}
    for name, values in steps:
        if values is None:
            store.drop(key(name))
            model.pop(key(name), None)
        else:
            store.put(key(name), values)
            model[key(name)] = values
        for value in "xyz":
            wanted = {found for found, each in model.items() if value in each}
            keys = store.keys_by_index("values", value)
            assert len(keys) == len(wanted)
            assert set(keys) == wanted
            assert store.by_index("values", value) == [model[each] for each in keys]
        assert set(store.index_values("values")) == {one for each in model.values() for one in each}
