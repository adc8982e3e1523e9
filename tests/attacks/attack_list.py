"""All attacks, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.attacks import bombs, floods
from tests.attacks.attack import Attack
from tests.attacks.manifests import DRIVER, Manifest, deployment

CLAIM: Final = "bomb-claim"


def _bomb(name: str, objects: list[Manifest], *names: str) -> Attack:
    claims = (CLAIM,) if any(each["kind"] == "ResourceClaim" for each in objects) else ()
    return Attack(name, objects, told="bomb", names=(*claims, *names))


SEARCHES: Final[dict[str, Callable[[], Attack]]] = {
    "counters-infeasible": lambda: _bomb(
        "counters-infeasible", bombs.exclusive_counters(count=24), "some"
    ),
    "counters-feasible": lambda: _bomb(
        "counters-feasible", bombs.exclusive_counters(count=22), "some"
    ),
    "results-limit": lambda: _bomb("results-limit", bombs.results_limit()),
    "too-few-values": lambda: _bomb("too-few-values", bombs.too_few_values()),
    "too-few-alike": lambda: _bomb("too-few-alike", bombs.too_few_alike()),
    "chain": lambda: _bomb("chain", bombs.chain()),
    "packing": lambda: _bomb("packing", bombs.packing()),
    "alternatives": lambda: _bomb("alternatives", bombs.many_alternatives()),
    "alternatives-32": lambda: _bomb("alternatives-32", bombs.many_alternatives(32, 8, 64)),
    "all-devices": lambda: _bomb("all-devices", bombs.all_devices()),
}


def _expression(name: str, objects: list[Manifest]) -> Attack:
    return _bomb(name, objects, "slow", "lists.range", f"{DRIVER}/bombs/d")


EXPRESSIONS: Final[dict[str, Callable[[], Attack]]] = {
    **{
        f"cel-{kind}": lambda kind=kind: _expression(  # type: ignore[misc]
            f"cel-{kind}", bombs.slow_selectors(kind, selectors=32)
        )
        for kind in (
            "cidr",
            "format-device",
            "regex",
            "semver",
            "text",
            "sets",
            "sort",
            "timestamp",
        )
    },
    "cel-720-devices": lambda: _expression(
        "cel-720-devices", bombs.slow_selectors("cidr-device", 720)
    ),
    "cel-quantity-class": lambda: _expression(
        "cel-quantity-class", bombs.slow_class("quantity-sum", 128, 31)
    ),
    "cel-derived": lambda: _expression("cel-derived", bombs.slow_derived("format-device")),
    "cel-extended-resource": lambda: _bomb(
        "cel-extended-resource", bombs.slow_extended_resource("format-device")
    ),
    "cel-error": lambda: _bomb("cel-error", bombs.late_error("cidr-listed")),
    "cel-cost": lambda: _bomb("cel-cost", bombs.slow_selectors("map", 128, 8)),
}

CROWDS: Final[dict[str, Callable[[], Attack]]] = {
    "hopeless-pods": lambda: Attack(
        "hopeless-pods", flood=floods.hopeless_pods(10_000), seconds=30, finite_seconds=900
    ),
    "many-bombs": lambda: Attack(
        "many-bombs", bombs.many_at_once(), told="bomb-0", names=["-0"], seconds=20
    ),
    "shared-claim": lambda: Attack("shared-claim", bombs.shared_claim(), bound=256),
    "pool-status-60": lambda: Attack(
        "pool-status-60", bombs.status_pools(), floods.pool_status(60, 1000)
    ),
    "pool-status-500": lambda: Attack(
        "pool-status-500", bombs.status_pools(50), floods.pool_status(500, 1000)
    ),
    "watches": lambda: Attack("watches", flood=floods.watches(1000), seconds=20),
    "replicas": lambda: Attack(
        "replicas",
        [deployment("replicas", 100_000, containers=[{"name": "c", "image": "pause"}])],
        seconds=20,
    ),
}

REQUESTS: Final[dict[str, Callable[[], Attack]]] = {
    "anonymous-bodies": lambda: Attack("anonymous-bodies", flood=floods.anonymous_bodies()),
    "half-bodies": lambda: Attack("half-bodies", flood=floods.half_bodies()),
    "idle-connections": lambda: Attack("idle-connections", flood=floods.idle_connections()),
    "large-maps": lambda: Attack("large-maps", flood=floods.large_maps(), seconds=15),
    "patches": lambda: Attack("patches", flood=floods.patch_monsters(), seconds=15),
    "yaml": lambda: Attack("yaml", flood=floods.yaml_monsters(), seconds=15),
    "labels": lambda: Attack("labels", flood=floods.label_monsters(), seconds=15),
}

ATTACKS: Final = {**SEARCHES, **EXPRESSIONS, **CROWDS, **REQUESTS}
REPRESENTATIVE: Final = ("counters-infeasible", "cel-cidr", "shared-claim", "patches")
"""Of every kind one, for the other shapes."""
