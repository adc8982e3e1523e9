"""Filling in what is missing. Whatever needs no change is shared, never copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from allot.apiserver.known_results import KnownResults

Data = dict[str, Any]
Step = Callable[[Data], Data]


def is_missing(value: object) -> bool:
    """Missing, null and the empty string all leave the choice to the server."""
    return value is None or value == ""


def part(data: object, *path: str) -> Data:
    """The object at a path; an empty one if it is not set."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def items(data: Data, name: str) -> list[Data]:
    """The objects in a list."""
    found = data.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def fill(data: Data, **defaults: Any) -> Data:
    """`data` with these fields where they are missing; `data` itself if none is."""
    missing = {name: value for name, value in defaults.items() if is_missing(data.get(name))}
    return data | missing if missing else data


def always_written(data: Data, *names: str) -> Data:
    """`data` with null for times that are not set: Kubernetes writes them always."""
    missing = {name: None for name in names if name not in data}
    return data | missing if missing else data


def without(data: Data, name: str) -> Data:
    """`data` without a field."""
    if name not in data:
        return data
    return {other: value for other, value in data.items() if other != name}


def change(data: Data, name: str, step: Step) -> Data:
    """`data` with `step` applied to the object in a field, if there is one."""
    part = data.get(name)
    if not isinstance(part, dict):
        return data
    changed = step(part)
    return data if changed is part else data | {name: changed}


def change_at(data: Data, path: tuple[str, ...], step: Step) -> Data:
    """The same, further down."""
    name, *rest = path
    if not rest:
        return change(data, name, step)
    return change(data, name, lambda part: change_at(part, tuple(rest), step))


def change_each(data: Data, name: str, step: Step) -> Data:
    """`data` with `step` applied to every object in a list."""
    items = data.get(name)
    if not isinstance(items, list):
        return data
    changed = [step(item) if isinstance(item, dict) else item for item in items]
    if all(after is before for after, before in zip(changed, items, strict=True)):
        return data
    return data | {name: changed}


class PartDefaults:
    """Defaults that are in some parts of an object and do not depend on others.

    Objects made from one template have equal parts, which are filled in once. No two statuses are equal.
    """

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps
        self._fill = tuple(
            (part, step if part == "status" else _Memory(step)) for part, step in steps.items()
        )

    def after(self, step_of: Callable[[str], Step]) -> PartDefaults:
        """The same, after another step for each part."""
        return PartDefaults(
            {part: _in_sequence(step_of(part), step) for part, step in self._steps.items()}
        )

    def __call__(self, data: Data) -> Data:
        for part, fill in self._fill:
            if part not in data:
                continue
            found = data[part]
            if found.__class__ is dict and (filled := fill(found)) is not found:
                data = {**data, part: filled}
        return data


def _in_sequence(first: Step, second: Step) -> Step:
    return lambda data: second(first(data))


class _Memory:
    """A step, with what it made of recent parts."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._filled = KnownResults[Data]()

    def __call__(self, part: Data) -> Data:
        return self._filled.get(part, lambda: self._step(part))


def make(data: Data, name: str, step: Step) -> Data:
    """Like `change`, but a missing object starts out empty."""
    return change(fill(data, **{name: {}}), name, step)
