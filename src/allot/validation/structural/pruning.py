"""Pruning: fields that a schema does not know are dropped, and reported for field validation."""

from __future__ import annotations

from typing import Any, Final

from allot.validation.structural.schemas import Schema

TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(
    value: Any, schema: Schema, *, is_root: bool = False, unknown: list[str] | None = None
) -> Any:
    """The value without unknown fields, whose paths are added to `unknown`; the same one if there are none.

    An object of its own, the root or an embedded resource, keeps apiVersion, kind and metadata.
    """
    return _pruned(value, schema, is_root or schema.is_embedded, "", unknown)


def _pruned(
    value: Any, schema: Schema, is_resource: bool, path: str, unknown: list[str] | None
) -> Any:
    if isinstance(value, dict):
        return _pruned_object(value, schema, is_resource, path, unknown)
    if isinstance(value, list):
        return _pruned_list(value, schema, path, unknown)
    return value


def _pruned_object(
    value: dict[str, Any], schema: Schema, is_resource: bool, path: str, unknown: list[str] | None
) -> dict[str, Any]:
    gone: list[str] = []
    changed: dict[str, Any] = {}
    keeps = schema.preserves_unknown
    for name, item in value.items():
        if is_resource and name in TYPE_FIELDS:
            continue  # their schemas do not prune: metadata has a type of its own
        child = schema.properties.get(name)
        if child is None:
            child = schema.additional
            if child is None:
                if not keeps and not schema.allows_additional:
                    gone.append(name)
                continue
        if item is None or not isinstance(item, dict | list):
            continue
        where = f"{path}.{name}" if path else name
        kept = _pruned(item, child, child.is_embedded, where, unknown)
        if kept is not item:
            changed[name] = kept
    if not gone and not changed:
        return value
    if unknown is not None:
        unknown += [f"{path}.{name}" if path else name for name in gone]
    left = {**value, **changed}
    for name in gone:
        del left[name]
    return left


def _pruned_list(
    value: list[Any], schema: Schema, path: str, unknown: list[str] | None
) -> list[Any]:
    items = schema.items
    if items is None:
        return value
    kept = [
        _pruned(item, items, items.is_embedded, f"{path}[{index}]", unknown)
        for index, item in enumerate(value)
    ]
    if all(new is old for new, old in zip(kept, value, strict=True)):
        return value
    return kept
