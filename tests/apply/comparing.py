"""Answers of two servers made comparable: without times, versions and what only one server adds."""

from __future__ import annotations

from typing import Any

_METADATA = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
_CONTENT = ("data", "immutable", "roleRef", "rules", "subjects", "value")


def comparable(code: int, body: Any) -> dict[str, Any]:
    """What two servers must agree on."""
    if not isinstance(body, dict):
        return {"code": code}
    if code >= 400:
        return {"code": code, **_failure(code, body)}
    if body.get("kind") == "Status":
        return {"code": code}
    metadata = body.get("metadata", {})
    entries = sorted(map(_entry, metadata.get("managedFields", [])), key=str)
    found: dict[str, Any] = {"code": code, "managedFields": entries}
    found |= {name: kept for name in _METADATA if (kept := _sent(metadata.get(name)))}
    return found | {name: body[name] for name in _CONTENT if body.get(name) is not None}


_ADDED = ("kubernetes.io/", "deprecated.daemonset", "batch.", "controller-uid", "job-name")


def _sent(value: Any) -> Any:
    """Metadata without what servers add for controllers and admission plugins that only one of them has."""
    match value:
        case dict():
            return {key: kept for key, kept in value.items() if not key.startswith(_ADDED)}
        case list():
            return [
                kept for kept in value if not isinstance(kept, str) or not kept.startswith(_ADDED)
            ]
        case _:
            return value


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "time": "time" in entry, "fieldsV1": _ordered(entry.get("fieldsV1"))}


def _ordered(fields: Any) -> Any:
    """The order of fields counts."""
    return [
        [name, _ordered(below)]
        for name, below in (fields or {}).items()
        if not name.startswith("f:deprecated.daemonset")
    ]


def _failure(code: int, body: dict[str, Any]) -> dict[str, Any]:
    message = body.get("message", "")
    if code == 422 and "meta.k8s.io" not in message:
        return {}  # what is wrong with an object is tested elsewhere
    details = body.get("details", {})
    causes = details.get("causes", [])
    if len(causes) > 1:
        # Kubernetes mixes the managers' causes.
        causes = sorted(causes, key=lambda cause: (cause["message"], cause["field"]))
    found = {"message": message, "reason": body.get("reason"), "details": {**details}}
    if causes:
        found["details"]["causes"] = causes
    return found
