"""LimitRanges."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.defaults.filling import Data, change, change_each, part
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.words import CREATED
from allot.validation.limit_range import validate_limit_range


def limit_range_defaults(limit_range: Data) -> Data:
    return change(
        limit_range, "spec", lambda spec: change_each(spec, "limits", _container_limit_defaults)
    )


def _container_limit_defaults(item: Data) -> Data:
    """For containers a maximum is also the default limit, and that the default request."""
    if item.get("type") != "Container":
        return item
    limit = part(item, "max") | part(item, "default")
    request = part(item, "min") | limit | part(item, "defaultRequest")
    filled = {"default": limit, "defaultRequest": request}
    missing = {name: amounts for name, amounts in filled.items() if amounts != part(item, name)}
    return item | missing if missing else item


DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(validate=validate_limit_range)),
    defaults=limit_range_defaults,
    table=CREATED,
    is_created_by_update=True,
)
