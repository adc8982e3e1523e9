"""LimitRanges: types, resource names, and bounds that fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.quantity import Quantity, QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.container_resources import validate_standard_name
from allot.validation.fields import FieldError, FieldPath, duplicate, forbidden, invalid, required
from allot.validation.formats import label_key_problems
from allot.validation.parts import Part, part, parts, text

LIMITS: Final = FieldPath("spec") / "limits"
TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
Amounts = dict[str, Quantity]


def validate_limit_range(limit_range: RawObject) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(parts(limit_range.get("spec", default={}), "limits")):
        path, type_ = LIMITS @ index, text(item, "type")
        problems = label_key_problems(type_)
        for problem in problems:
            yield invalid(path / "type", type_, problem)
        if not problems and "/" not in type_ and type_ not in TYPES:
            yield invalid(path / "type", type_, "must be a standard limit type or fully qualified")
        if type_ in seen:
            yield duplicate(path / "type", type_)
        seen.add(type_)
        yield from _validate_item(item, type_, path)


def _validate_item(item: Part, type_: str, path: FieldPath) -> Iterator[FieldError]:
    amounts = {field: _amounts(part(item, field)) for field in _FIELDS}
    named = ["max", "min", "maxLimitRequestRatio"]
    if type_ == "Pod":
        for field in ("default", "defaultRequest"):
            if amounts[field]:
                yield forbidden(path / field, "may not be specified when `type` is 'Pod'")
    else:
        named[2:2] = ["default", "defaultRequest"]
    for field in named:
        for name in amounts[field]:
            yield from _validate_name(name, type_, path / field @ name)
    sized = "storage" in amounts["min"] or "storage" in amounts["max"]
    if type_ == "PersistentVolumeClaim" and not sized:
        yield required(
            path / "limits",
            "either minimum or maximum storage value is required, but neither was provided",
        )
    names = sorted({name for field in _FIELDS for name in amounts[field]})
    for name in names:
        yield from _validate_bounds(
            {field: amounts[field][name] for field in _FIELDS if name in amounts[field]}, name, path
        )


def _amounts(raw: Part) -> Amounts:
    found: Amounts = {}
    for name, value in raw.items():
        try:
            found[name] = quantity_from_json(value)
        except QuantityError:
            continue  # refused by the schema
    return found


def _validate_name(name: str, type_: str, path: FieldPath) -> Iterator[FieldError]:
    problems = label_key_problems(name)
    for problem in problems:
        yield invalid(path, name, problem)
    if problems or "/" in name:
        return
    yield from validate_standard_name(name, path, for_container=type_ == "Container")


def _validate_bounds(found: Amounts, name: str, path: FieldPath) -> Iterator[FieldError]:
    least, most = found.get("min"), found.get("max")
    limit, request = found.get("default"), found.get("defaultRequest")
    ratio = found.get("maxLimitRequestRatio")

    def above(field: str, shown: Quantity, what: str) -> FieldError:
        return invalid(path / field @ name, str(shown), what)

    if least is not None and most is not None and least > most:
        yield above("min", least, f"min value {least} is greater than max value {most}")
    if request is not None:
        if least is not None and least > request:
            yield above(
                "defaultRequest",
                request,
                f"min value {least} is greater than default request value {request}",
            )
        if most is not None and request > most:
            yield above(
                "defaultRequest",
                request,
                f"default request value {request} is greater than max value {most}",
            )
        if limit is not None and request > limit:
            yield above(
                "defaultRequest",
                request,
                f"default request value {request} is greater than default limit value {limit}",
            )
    if limit is not None:
        if least is not None and least > limit:
            yield above(
                "default", least, f"min value {least} is greater than default value {limit}"
            )
        if most is not None and limit > most:
            yield above("default", most, f"default value {limit} is greater than max value {most}")
    if ratio is not None:
        yield from _validate_ratio(ratio, least, most, path / "maxLimitRequestRatio" @ name)


def _validate_ratio(
    ratio: Quantity, least: Quantity | None, most: Quantity | None, path: FieldPath
) -> Iterator[FieldError]:
    if ratio.milli_value() < 1000:
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least is None or most is None or not least:
        return
    bound = most.milli_value() / least.milli_value()
    if ratio.milli_value() / 1000 > bound:
        yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {bound:f}")
