"""Expressions that cost as much as the API allows, of many kinds.

`dearest` finds how often the loop may go round so that the estimate stays within the limit: what is accepted here is
as near to the limit as it gets, whatever prices are.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from allot.cel import CelCompileError, Origin, compile_selector
from allot.features import DEFAULTS
from allot.validation.expressions import COST_LIMIT, MAX_EXPRESSION_LENGTH
from tests.attacks.manifests import DRIVER

DEVICE: Final = f'device.attributes["{DRIVER}"]'
INDEX: Final = f"{DEVICE}.index"
INNER_ROUNDS: Final = 20

CONDITIONS: Final = {
    "plain": "a + b < 0",
    "cidr": 'cidr("10.0.0.0/8").containsIP("11.1.1.1")',
    "cidr-device": f"cidr({DEVICE}.network).containsIP(ip({DEVICE}.address))",
    "cidr-listed": '["10.0.0.0/8", "11.0.0.0/16"].exists(c, cidr(c).containsIP(ip("12.1.1.1")))',
    "format": '"%s-%d".format(["x", a + b]) == "never"',
    "format-device": f'"%s-%d-%s".format([{DEVICE}.text, a, {DEVICE}.address]) == "never"',
    "regex": f'({DEVICE}.text + "aaaaaaaaaaaaaaaaaaaaaaaa").matches("^(a|aa)+$")',
    "quantity": f'quantity({DEVICE}.size).isGreaterThan(quantity("100Gi"))',
    "quantity-sum": f'quantity({DEVICE}.size).add(quantity("1Mi")).compareTo(quantity("9Gi")) > 0',
    "semver": f'semver({DEVICE}.release).isGreaterThan(semver("9000.0.0"))',
    "text": f'{DEVICE}.text.split("e").size() > 9',
    "text-built": f'({DEVICE}.text + "-" + {DEVICE}.address + "-x").lowerAscii() == "never"',
    "sets": "sets.contains([a, b, a + b], [-1])",
    "sets-of-texts": f'sets.intersects([{DEVICE}.text, {DEVICE}.address], ["never", "ever"])',
    "sort": "[b, a, a + b, 7, 3, 11].sort()[0] < 0",
    "distinct": "[b, a, a + b, 7, 3, 11].distinct().size() > 6",
    "map": '{"a": a, "b": b}["a"] < 0',
    "url": 'url("https://example.com/never").getHost() == "never"',
    "timestamp": 'timestamp(a * 1000).getFullYear("Europe/Berlin") < 0',
    "duration": 'duration("1h30m") < duration("1s")',
    "attributes": f"{INDEX} + a + b < 0",
}
"""In loops over `a` and `b`. All are false, always."""


def attributes_of(index: int) -> dict[str, int | str]:
    """What the expressions ask of a device; no two devices are alike."""
    return {
        "index": index,
        "text": f"device-{index}",
        "size": f"{index + 1}Mi",
        "release": f"1.{index}.0",
        "address": f"11.1.{index // 250}.{index % 250}",
        "network": f"10.{index % 250}.0.0/16",
    }


@cache
def dearest(kind: str, share: float = 0.99) -> str:
    """An expression that is false for every device and whose estimated cost is just below that share of the limit."""
    low, high = 1, 2
    while _is_accepted(_looping(kind, high), share):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_accepted(_looping(kind, middle), share) else (low, middle)
    return _looping(kind, low)


def _looping(kind: str, rounds: int) -> str:
    condition = CONDITIONS[kind]
    return (
        f"{INDEX} >= 0 && lists.range({rounds}).exists(a, "
        f"lists.range({INNER_ROUNDS}).exists(b, {condition}))"
    )


def _is_accepted(expression: str, share: float) -> bool:
    try:
        cost = compile_selector(expression, Origin.NEW, DEFAULTS).max_cost
    except CelCompileError:
        return False
    return cost <= COST_LIMIT * share and len(expression) <= MAX_EXPRESSION_LENGTH // 2
