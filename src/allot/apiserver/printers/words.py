"""Parts of objects as table cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from allot.api.raw import RawObject
from allot.api.selectors import selector_string
from allot.apiserver.printers.column import NAME, NONE, Age, Cell, Column, Table


def text_at(obj: RawObject, *path: str) -> str:
    """The value at a path as a string; empty if it is not set."""
    return str(obj.get(*path, default=""))


def count_at(obj: RawObject, *path: str) -> int:
    value = obj.get(*path, default=0)
    return value if isinstance(value, int) else 0


def age_of(obj: RawObject, age: Age) -> str:
    return age(obj.metadata.creation_timestamp)


def or_none(value: object) -> str:
    return str(value) if value else NONE


def joined(texts: Iterable[object], separator: str = ",") -> str:
    return separator.join(str(text) for text in texts)


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, sorted."""
    return or_none(joined(f"{key}={value}" for key, value in sorted((labels or {}).items())))


def selector_cell(selector: Mapping[str, Any] | None) -> str:
    return or_none(selector_string(selector))


def template_cells(template: Mapping[str, Any]) -> list[str]:
    """Names and images of the containers of a pod template."""
    containers = (template.get("spec") or {}).get("containers") or []
    return [
        joined(container.get("name", "") for container in containers),
        joined(container.get("image", "") for container in containers),
    ]


def template_of(workload: RawObject) -> list[str]:
    """The same of the pod template in a workload's spec."""
    return template_cells(workload.get("spec", "template", default={}))


def selector_of(workload: RawObject) -> str:
    return selector_cell(workload.get("spec", "selector"))


def first_few(texts: Sequence[object], limit: int = 3) -> str:
    """At most three of them, and how many there are besides."""
    shown = joined(texts[:limit])
    return f"{shown} + {len(texts) - limit} more..." if len(texts) > limit else shown


def _created_row(obj: RawObject, _: Age) -> list[Cell]:
    return [obj.metadata.name, str(obj.get("metadata", "creationTimestamp", default=""))]


CREATED: Final = Table((NAME, Column("Created At")), _created_row)
"""For kinds of which nothing fits into a column."""
