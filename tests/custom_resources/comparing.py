"""Answers of two servers made comparable: without times, versions, uids, and in one order."""

from __future__ import annotations

import json
import re
from typing import Any

_CHANGING = ("uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime")
_generated = re.compile(r"pre-\w{5}$")
_place = re.compile(r" \([\w.\[\]-]+: [^()]*\)$")
_operation = re.compile(r"(?<=in our request): operation \d+ .*")
_age = re.compile(r"(\d+[smhdy])+").fullmatch
_times = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def comparable(code: int, body: Any, warnings: list[str]) -> dict[str, Any]:
    """What two servers must agree on."""
    found: dict[str, Any] = {"code": code, "warnings": sorted(warnings)}
    if not isinstance(body, dict):
        return found
    if body.get("kind") == "Status" and code >= 400:
        details = body.get("details") or {}
        causes = sorted(_cause(cause) for cause in details.get("causes") or ())
        place = {name: details.get(name) for name in ("name", "group", "kind")}
        found |= {"reason": body.get("reason"), "causes": causes, **place}
        if not causes:
            # Ours also says where in the document a value of the wrong type is.
            message = _place.sub("", body.get("message") or "")
            # And which operation of a JSON patch failed.
            found["message"] = _operation.sub("", message)
        return found
    return found | {"body": _stable(body)}


def _cause(cause: dict[str, str]) -> tuple[str, str, str]:
    field, message = cause.get("field", ""), cause.get("message", "")
    if field == "patch":  # it shows the whole object
        message = message.rpartition('": ')[2]
    return field, cause.get("reason", ""), message


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "Table":
            return _table(value)
        kept = {name: _stable(item) for name, item in value.items() if name not in _CHANGING}
        if "deletionTimestamp" in kept:
            kept["deletionTimestamp"] = "some time"
        if "managedFields" in kept:
            kept["managedFields"] = sorted(kept["managedFields"], key=_in_order)
        kept.pop("storageVersionHash", None)
        return kept
    if isinstance(value, list):
        return [_stable(item) for item in value]
    if isinstance(value, str):
        return _generated.sub("pre-xxxxx", value)
    return value


def _in_order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _table(table: dict[str, Any]) -> dict[str, Any]:
    """A table with its own descriptions of columns that every server words itself, and without ages, which grow."""
    definitions = table.get("columnDefinitions") or ()
    is_date = [column["type"] == "date" for column in definitions]
    columns = [
        {name: value for name, value in column.items() if name != "description"}
        | {"custom": column["description"] if "JSONPath" in column["description"] else ""}
        for column in definitions
    ]
    return {
        "columns": columns,
        "rows": [
            [_cell(cell, date) for cell, date in zip(row["cells"], is_date, strict=True)]
            for row in table.get("rows") or ()
        ],
    }


def _cell(cell: Any, is_date: bool) -> Any:
    if not isinstance(cell, str):
        return cell
    return "some age" if is_date and _age(cell) else _times.sub("some time", cell)
