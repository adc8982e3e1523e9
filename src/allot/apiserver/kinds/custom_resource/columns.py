"""Tables of custom resources: the columns of additionalPrinterColumns, read by JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from allot.api.raw import RawObject
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.apiserver.printers.json_paths import JsonPathError, json_path

_INVALID: Final = "<invalid>"
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_time: Final = msgspec.json.Decoder(Annotated[datetime, msgspec.Meta(tz=True)])


def table_of(columns: Sequence[Mapping[str, Any]]) -> Table:
    """The table of a version; name and age if it has no columns of its own."""
    columns = columns or (_AGE,)
    finders = [_finder(column) for column in columns]

    def row(obj: RawObject, age: Age) -> list[Cell]:
        return [obj.metadata.name, *(find(obj.data, age) for find in finders)]

    return Table((NAME, *map(_column, columns)), row, dict(map(_description, columns)))


def _column(column: Mapping[str, Any]) -> Column:
    return Column(
        column["name"], column["type"], column.get("format") or "", column.get("priority") or 0
    )


def _description(column: Mapping[str, Any]) -> tuple[str, str]:
    path = column["jsonPath"]
    description = column.get("description")
    return column["name"], (
        description or f"Custom resource definition column (in JSONPath format): {path}"
    )


def _finder(column: Mapping[str, Any]) -> Callable[[Any, Age], Cell]:
    type_ = column["type"]
    try:
        find = json_path(column["jsonPath"])
    except JsonPathError:
        return lambda _data, _age: None

    def cell(data: Any, age: Age) -> Cell:
        found = find(data)
        return _cell(type_, found[0], age) if found and found[0] is not None else None

    return cell


def _cell(type_: str, value: Any, age: Age) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_:
        case "string":
            return value if isinstance(value, str) else _text(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return float(value) if isinstance(value, float) else int(value)
        case "date" if isinstance(value, str):
            try:
                return age(_time.decode(msgspec.json.encode(value)))
            except msgspec.ValidationError:
                return _INVALID
    return None


def _text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
