"""Laws of field sets and of server-side apply."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.apiserver.managed_fields import field_sets
from allot.apiserver.managed_fields.comparison import compare, field_set
from allot.apiserver.managed_fields.field_manager import FieldManager
from allot.apiserver.managed_fields.field_sets import (
    FieldSet,
    difference,
    intersection,
    overlap,
    union,
)
from allot.apiserver.managed_fields.kind_schemas import empty_object, value_type
from allot.apiserver.managed_fields.managers import capped, decode_stored, encode
from allot.apiserver.managed_fields.merging import merge
from allot.apiserver.managed_fields.updater import ApplyConflictError, UnknownVersionError
from allot.apiserver.managed_fields.validation import type_problems, valid_fields
from allot.apiserver.managed_fields.value_types import ValueType
from allot.apiserver.schemas.types import type_named

DEPLOYMENT: Final = "io.k8s.api.apps.v1.Deployment"
TYPE: Final = value_type(DEPLOYMENT)
NOW: Final = "2026-01-01T00:00:00Z"

Document = dict[str, Any]


def cleaned(value: Any) -> Any:
    """A document as a server stores it: without null and what is empty."""
    if isinstance(value, dict):
        kept = {name: cleaned(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, [], {})}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


class OneVersion:
    """A kind with one version."""

    def type_of(self, api_version: str) -> ValueType:
        if api_version != "apps/v1":
            raise UnknownVersionError(api_version)
        return TYPE

    def convert(self, document: Document, to: str) -> Document:
        self.type_of(to)
        return document


def a_field_manager() -> FieldManager:
    empty = empty_object(type_named(DEPLOYMENT))
    return FieldManager(OneVersion(), "apps/v1", "Deployment", empty)


# --- documents ---

texts = st.sampled_from("123")
maps = st.dictionaries(st.sampled_from("abcd"), texts, max_size=4)


def keyed(names: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Document]]:
    """Lists of items with different names."""
    item = st.fixed_dictionaries({"name": st.sampled_from(names)}, optional=fields)
    return st.lists(item, max_size=3, unique_by=lambda each: each["name"])


environment = keyed("ABC", value=texts)
containers = keyed("cd", image=texts, env=environment, args=st.lists(texts, max_size=2))
specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "paused": st.booleans(),
        "template": st.fixed_dictionaries(
            {},
            optional={
                "spec": st.fixed_dictionaries(
                    {}, optional={"containers": containers, "nodeSelector": maps}
                )
            },
        ),
    },
)


@st.composite
def configurations(draw: st.DrawFn) -> Document:
    metadata: Document = {"name": "x"}
    if draw(st.booleans()):
        metadata["labels"] = draw(maps)
    if draw(st.booleans()):
        metadata["finalizers"] = draw(st.lists(texts, max_size=3, unique=True))
    document: Document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    whole: Document = cleaned(document | ({"spec": draw(specs)} if draw(st.booleans()) else {}))
    return whole


sets = configurations().map(lambda document: field_set(TYPE, document))


def in_wire_order(fields: FieldSet) -> FieldSet:
    """The same set with its elements in the order of FieldsV1."""
    return field_sets.ordered({element: in_wire_order(below) for element, below in fields.items()})


def members(fields: FieldSet) -> set[str]:
    return set(field_sets.paths(fields))


# --- field sets ---


@given(sets, sets)
def test_sets_of_paths_are_sets(left: FieldSet, right: FieldSet) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(intersection(left, right)) == members(left) & members(right)
    assert members(difference(left, right)) == members(left) - members(right)
    assert overlap(left, right) == bool(members(left) & members(right))
    assert overlap(left, right) == (difference(left, right) is not left)


@given(sets)
def test_what_is_written_is_read_again(fields: FieldSet) -> None:
    wire = in_wire_order(fields)
    again = field_sets.parse_fields(msgspec.json.decode(msgspec.json.encode(wire)))
    assert again == fields
    assert list(in_wire_order(again)) == list(wire)


@given(configurations(), configurations(), sets)
def test_sets_are_in_the_order_in_which_they_are_written(
    one: Document, other: Document, fields: FieldSet
) -> None:
    """Entries are stored without being sorted again."""
    compared = compare(TYPE, one, other)
    for found in (
        fields,
        compared.removed,
        compared.modified,
        compared.added,
        union(fields, compared.changed),
        difference(fields, compared.added),
        intersection(fields, compared.added),
    ):
        wire = in_wire_order(found)
        assert msgspec.json.encode(found) == msgspec.json.encode(wire)


@given(configurations(), configurations())
def test_what_is_added_one_way_is_removed_the_other(one: Document, other: Document) -> None:
    there, back = compare(TYPE, one, other), compare(TYPE, other, one)
    assert members(there.added) == members(back.removed)
    assert members(there.modified) == members(back.modified)
    assert compare(TYPE, one, one).is_same


@given(configurations(), configurations())
def test_what_is_applied_is_there(live: Document, applied: Document) -> None:
    """Nothing that the configuration claims differs from it after the merge."""
    merged = merge(TYPE, live, applied)
    claimed = members(field_set(TYPE, applied))
    compared = compare(TYPE, applied, merged)
    assert not members(compared.modified) & claimed
    assert not members(compared.removed) & claimed


MISFITS: Final[tuple[Document, ...]] = (
    {},
    {"unknown": 1},
    {"spec": 1},
    {"spec": None},
    {"spec": []},
    {"spec": {"replicas": "one"}},
    {"spec": {"template": {"spec": {"containers": {}}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}}},
    {"spec": {"template": {"spec": {"containers": ["text"]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": 1}]}}}},
    {"spec": {"selector": {"matchLabels": {"a": 1}}}},
    {"spec": {"selector": {"matchLabels": {"a": None, "b": "c"}}}},
    {"metadata": {"labels": {"a": ["b"]}, "finalizers": ["a", "b"]}},
    {"metadata": {"finalizers": ["a", "a"]}},
)


@given(configurations(), st.sampled_from(MISFITS))
def test_fields_are_found_while_they_are_validated(config: Document, more: Document) -> None:
    document = {**config, **more}

    found = valid_fields(TYPE, document)

    if any(type_problems(TYPE, document)):
        assert found is None
    else:
        assert msgspec.json.encode(found) == msgspec.json.encode(field_set(TYPE, document))


# --- writes that take nothing from others ---

LATER: Final = "2026-01-02T00:00:00Z"


@given(configurations(), configurations(), st.sampled_from(["one", "two"]))
def test_entries_that_stay_are_those_of_owners_that_stay(
    one: Document, other: Document, name: str
) -> None:
    manager = a_field_manager()
    entries = manager.created(one, (), "one", NOW)
    comparison = manager._updater.compared(one, other)

    found = manager._after_plain_update(entries, comparison, name, LATER)

    owners = manager._with_changes(comparison, decode_stored(entries), name, LATER)
    assert msgspec.json.encode(found) == msgspec.json.encode(encode(capped(owners)))


@given(configurations(), configurations())
def test_what_is_applied_alone_is_applied_to_the_whole(live: Document, config: Document) -> None:
    manager = a_field_manager()
    named = {"name": "x", "uid": "u"}
    live["metadata"] |= named
    entries = manager.created({**live, "spec": {}, "status": {"replicas": 1}}, (), "one", NOW)
    config["metadata"] = named
    parts = {name: value for name, value in live.items() if name != "metadata"}

    found = manager.applied_alone(parts, named, entries, config, "two", LATER)

    whole = manager.applied(live, entries, config, "two", LATER, force=False)
    assert (found is not None) == (whole.changed and "spec" in config and bool(entries))
    if found is not None:
        assert whole.changed
        assert {**found.document, "metadata": live["metadata"]} == whole.document
        assert msgspec.json.encode(found.entries) == msgspec.json.encode(whole.entries)


# --- apply ---


class Cluster:
    """One object to which managers apply."""

    def __init__(self) -> None:
        self.manager = a_field_manager()
        self.live: Document | None = None
        self.entries: list[Document] = []

    def apply(self, config: Document, name: str, *, force: bool = False) -> bool:
        """Whether something changed."""
        before = (self.live, self.entries)
        merged = self.manager.applied(self.live, self.entries, config, name, NOW, force=force)
        self.live, self.entries = cleaned(merged.document), merged.entries
        return before != (self.live, self.entries)

    def fields_of(self, name: str) -> set[str]:
        return {
            path
            for entry in self.entries
            if entry["manager"] == name
            for path in field_sets.paths(entry["fieldsV1"])
        }


@given(configurations(), st.booleans())
def test_applying_twice_changes_nothing(config: Document, force: bool) -> None:
    cluster = Cluster()
    cluster.apply(config, "one")
    assert not cluster.apply(config, "one", force=force)


def prefixed(config: Document, prefix: str) -> Document:
    """The same configuration with names of its own."""
    labels = {
        f"{prefix}{name}": value for name, value in config["metadata"].get("labels", {}).items()
    }
    finalizers = [f"{prefix}{name}" for name in config["metadata"].get("finalizers", [])]
    metadata: Document = {"name": "x", "labels": labels, "finalizers": finalizers}
    template = config.get("spec", {}).get("template", {}).get("spec", {})
    items = [{**item, "name": f"{prefix}{item['name']}"} for item in template.get("containers", [])]
    head = {name: config[name] for name in ("apiVersion", "kind")}
    spec = {"template": {"spec": {"containers": items}}}
    whole: Document = cleaned({**head, "metadata": metadata, "spec": spec})
    return whole


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), configurations()), max_size=8))
def test_disjoint_managers_never_lose_fields(writes: list[tuple[str, Document]]) -> None:
    """Each manager's fields are as it applied them last, whatever the others do."""
    cluster = Cluster()
    last: dict[str, Document] = {}
    for name, config in writes:
        last[name] = prefixed(config, name)
        cluster.apply(last[name], name)
        for other, applied in last.items():
            claimed = members(field_set(TYPE, applied))
            compared = compare(TYPE, applied, cluster.live)
            assert not members(compared.modified) & claimed
            assert not members(compared.removed) & claimed
            assert cluster.fields_of(other) <= claimed


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), configurations()), max_size=6))
def test_conflicts_are_about_fields_of_others_that_would_change(
    writes: list[tuple[str, Document]],
) -> None:
    cluster = Cluster()
    for name, config in writes:
        other = "two" if name == "one" else "one"
        theirs, live = cluster.fields_of(other), cluster.live
        try:
            cluster.apply(config, name)
        except ApplyConflictError as error:
            (fields,) = error.fields_by_manager.values()
            assert members(fields) <= theirs
            cluster.apply(config, name, force=True)
            assert not members(fields) & cluster.fields_of(other)
        else:
            kept = cluster.fields_of(other)
            compared = compare(TYPE, live or {}, cluster.live)
            assert not members(compared.modified) & kept


@settings(deadline=None)
@given(st.lists(configurations(), min_size=1, max_size=6))
def test_the_only_manager_has_what_it_applied_last(configs: list[Document]) -> None:
    """What it does not say any more is removed."""
    cluster = Cluster()
    for config in configs:
        cluster.apply(config, "one")
    fresh = Cluster()
    fresh.apply(configs[-1], "one")
    assert cluster.fields_of("one") == fresh.fields_of("one")
    assert members(field_set(TYPE, cluster.live)) == members(field_set(TYPE, fresh.live))
    assert compare(TYPE, fresh.live, cluster.live).modified == {}
