"""Strategic merge patches: merge patches that know types, so that lists can be merged by key.

Directives are fields whose names start with a dollar sign:

    $patch: replace | delete               what happens to this object, or list item
    $retainKeys: [a, b]                    all other fields of this object are removed
    $deleteFromPrimitiveList/F: [x, y]     these are removed from the list F of strings or numbers
    $setElementOrder/F: [{name: a}, ...]   how the list F is sorted afterwards

Lists are merged in `keyed_lists`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from allot.apiserver.registry.patches.documents import (
    decode_patch,
    identity,
    is_same,
    not_a_map,
    plain,
)
from allot.apiserver.registry.patches.errors import PatchError, shown_value
from allot.apiserver.registry.patches.keyed_lists import (
    DELETE_FROM,
    DIRECTIVE,
    ORDER_OF,
    RETAIN_KEYS,
    ListRule,
    in_order,
    is_directive,
    is_only_directive,
    merged_items,
    merged_scalars,
    without_directives,
)
from allot.apiserver.schemas.types import Field, Type, type_named

_GO_TYPES: Final = {
    str: "string", bool: "bool", int: "int64", float: "float64", type(None): "%!s(<nil>)",
}  # fmt: skip

FieldOf = Callable[[str], Field | None]
"""The field with a name, if the type knows one."""


@dataclass(frozen=True)
class StructFields:
    """The fields of a type that has a name."""

    struct: str
    fields: Mapping[str, Field]

    def __call__(self, name: str) -> Field | None:
        return self.fields.get(name)


def strategic_merge_patch(document: Any, patch: bytes, schema: Type) -> Any:
    """`document` merged with the patch by the rules of its type; `PatchError` if it does not fit.

    Fields that the type does not have merge like those of a merge patch.
    """
    changes = decode_patch(patch)
    if changes is None:
        return document
    if not isinstance(changes, dict):
        raise PatchError.malformed(not_a_map(changes))
    live = plain(document)
    kind = str(live.get("kind", "")) if isinstance(live, dict) else ""
    return merged_object(document, changes, StructFields(kind, schema.fields))


def merged_object(target: Any, changes: dict[str, Any], field_of: FieldOf) -> Any:
    """An object with changes; the very same `target` if they change nothing that was kept as bytes.

    Without a target they are the object: what looks like a directive in them is a field like any other.
    """
    if target is None:
        return _Object({}, field_of).set(changes)
    before = plain(target)
    after = _Object(before if isinstance(before, dict) else {}, field_of).merged(changes)
    return target if before is not target and is_same(before, after) else after


class _Object:
    """An object that is being merged."""

    def __init__(self, fields: dict[str, Any], field_of: FieldOf) -> None:
        self._before = fields
        self._fields = dict(fields)
        self._field_of = field_of

    def merged(self, changes: dict[str, Any]) -> dict[str, Any]:
        if "$" in "".join(changes):
            return self._directed(changes)
        return self.set(changes)

    def set(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The same for changes without directives."""
        for name, value in changes.items():
            self._merge(name, value)
        return self._fields

    def _directed(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The same for changes that may have directives."""
        match changes.get(DIRECTIVE):
            case None if DIRECTIVE not in changes:
                pass
            case "replace":
                rest = {name: value for name, value in changes.items() if name != DIRECTIVE}
                return _Object({}, self._field_of).merged(rest)
            case "delete":
                return {}
            case other:
                raise PatchError.wrong_directive(other, changes)
        if RETAIN_KEYS in changes:
            self._retain(changes)
        for name, value in changes.items():
            if name.startswith(DELETE_FROM):
                self._delete_from(name.removeprefix(DELETE_FROM), value)
        for name, value in changes.items():
            if not is_directive(name):
                self._merge(name, value)
        for name, value in changes.items():
            if name.startswith(ORDER_OF):
                self._order(name.removeprefix(ORDER_OF), value, changes)
        return self._fields

    def _retain(self, changes: dict[str, Any]) -> None:
        keys = changes[RETAIN_KEYS]
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise _bad_retain_keys("it must list names")
        retained = frozenset(keys)
        for name, value in changes.items():
            if not is_directive(name) and value is not None and name not in retained:
                raise _bad_retain_keys(f'"{name}" is set but not in the list')
        self._fields = {name: value for name, value in self._fields.items() if name in retained}

    def _delete_from(self, name: str, values: Any) -> None:
        if not isinstance(values, list):
            return  # as in Kubernetes
        present = plain(self._fields.get(name))
        if isinstance(present, list):
            gone = {identity(value) for value in values}
            self._fields[name] = [item for item in present if identity(item) not in gone]

    def _merge(self, name: str, value: Any) -> None:
        if value is None:
            self._fields.pop(name, None)
            return
        field = self._field_of(name)
        target = self._fields.get(name)
        if isinstance(value, dict):
            if name not in self._fields and DIRECTIVE in value:
                return  # as in Kubernetes, whatever the directive says
            if name in self._fields and field is not None and field.patch_strategy == "replace":
                target = {}
            self._fields[name] = merged_object(target, value, _fields_inside(field))
        elif isinstance(value, list):
            self._fields[name] = _merged_list(target, value, field)
        else:
            self._fields[name] = value

    def _order(self, name: str, order: Any, changes: dict[str, Any]) -> None:
        if not isinstance(order, list):
            shown = _GO_TYPES.get(type(order), "map[string]interface {}")
            raise PatchError.unclassified(f"expected a []interface {{}}, but received a {shown}")
        rule = self._order_rule(name)
        if rule is None:
            return  # a list that is replaced as a whole: kube-apiserver panics
        if rule.merge_key:
            for index, item in enumerate(order):
                if not isinstance(item, dict):
                    raise PatchError.unclassified(f"value for key {index} is not a map")
        wanted = [rule.required_identity(item) for item in order]
        changed = changes.get(name)
        if isinstance(changed, list):
            _check_order(changed, order, rule)
        present = plain(self._fields.get(name))
        before = plain(self._before.get(name))
        if isinstance(present, list):
            live = before if isinstance(before, list) else []
            self._fields[name] = in_order(present, wanted, rule.identities(live), rule)

    def _order_rule(self, name: str) -> ListRule | None:
        """How items that are sorted are told apart, also scalars of a list that is replaced."""
        field = self._field_of(name)
        if field is None and isinstance(self._field_of, StructFields):
            raise PatchError.unclassified(
                f'unable to find api field in struct {self._field_of.struct} for the json field "{name}"'
            )
        if isinstance(plain(self._fields.get(name)), dict):
            raise PatchError.unclassified(
                "expected a []interface {}, but received a map[string]interface {}"
            )
        if field is not None and field.container == "list" and not field.is_type:
            return ListRule()
        return _list_rule(field)


def _check_order(changed: list[Any], order: list[Any], rule: ListRule) -> None:
    """What a patch sets must be in the list that it sorts by, and in the same order."""
    place = {rule.identity(item): index for index, item in enumerate(order)}
    places = [place.get(rule.identity(item), -1) for item in without_directives(changed)]
    if -1 in places or places != sorted(places):
        shown = shown_value(changed), shown_value(order)
        raise PatchError.unclassified(
            f"The order in patch list:\n{shown[0]}\n doesn't match $setElementOrder list:\n{shown[1]}\n"
        )


def _bad_retain_keys(problem: str) -> PatchError:
    short = "invalid patch format of retainKeys"
    return PatchError(400, "BadRequest", f"{short}: {problem}", short)


def _merged_list(target: Any, changes: list[Any], field: Field | None) -> Any:
    rule = _list_rule(field)
    live = plain(target)
    if not isinstance(live, list):
        live = []
    if rule is None:
        return changes  # what looks like a directive is a field like any other
    if not rule.merge_key:
        return merged_scalars(live, without_directives(changes), rule)
    inside = _fields_inside(field)
    if target is None:  # as in Kubernetes, a new list is taken as it is, also with a key twice
        return [
            merged_object(None, item, inside) if isinstance(item, dict) else item
            for item in changes
            if not is_only_directive(item)
        ]
    return merged_items(
        live, changes, rule, lambda item, change: merged_object(item, change, inside)
    )


def _list_rule(field: Field | None) -> ListRule | None:
    """How the items of a list are told apart; None for lists that are replaced."""
    if field is None or field.container != "list":
        return None
    if "merge" not in field.patch_strategy.split(","):
        return None
    return ListRule(field.merge_key)


def _fields_inside(field: Field | None) -> FieldOf:
    """The fields of an object in this field, or of the items of its list. Those of a map are all alike."""
    if field is not None and field.container == "map":
        value = field._replace(container="", patch_strategy="")
        return lambda _: value
    if field is not None and field.is_type:
        return StructFields(field.type.rpartition(".")[2], type_named(field.type).fields)
    return lambda _: None
