"""Further attacks, by name: on devices, controllers, extensions of the API, and requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.attacks import (
    device_bombs,
    extensions,
    hostile_webhooks,
    products,
    request_floods,
    workloads,
)
from tests.attacks.attack import Attack

Made = Callable[[], Attack]

DEVICES: Final[dict[str, Made]] = {
    name: lambda name=name, make=make: Attack(name, make(), told="bomb", seconds=12)  # type: ignore[misc]
    for name, make in {
        "knapsack": device_bombs.knapsack,
        "derived-search": device_bombs.derived_search,
        "request-policies": device_bombs.request_policies,
        "claims-of-alternatives": device_bombs.claims_of_alternatives,
        "hundred-claims": device_bombs.hundred_claims,
        "all-of-many-pools": device_bombs.all_of_many_pools,
        "taint-rules": device_bombs.taint_rules,
    }.items()
}
DEVICES["admin-access"] = lambda: Attack(
    "admin-access",
    flood=request_floods.with_admin_access(device_bombs.admin_access()),
    told="bomb",
    seconds=12,
)
DEVICES["many-devices"] = lambda: Attack(
    "many-devices",
    device_bombs.many_devices(),
    request_floods.reading("/metrics/devices", "/metrics", "/metrics/scheduler", connections=2),
    seconds=60,
)

CONTROLLERS: Final[dict[str, Made]] = {
    "endless-replicas": lambda: Attack(
        "endless-replicas", workloads.endless_replicas(), seconds=25
    ),
    "failing-jobs": lambda: Attack("failing-jobs", workloads.failing_jobs(), seconds=25),
    "cron-jobs": lambda: Attack("cron-jobs", workloads.cron_jobs(), seconds=65),
    "selectors-over-everything": lambda: Attack(
        "selectors-over-everything", workloads.selectors_over_everything(), seconds=25
    ),
    "quotas": lambda: Attack("quotas", workloads.quotas(), request_floods.evictions(), seconds=20),
    "affinity-terms": lambda: Attack("affinity-terms", workloads.affinity_terms(), seconds=20),
    "preemption": lambda: Attack("preemption", workloads.preemption(), seconds=20),
    "owners": lambda: Attack("owners", flood=workloads.owners(), finite_seconds=120, seconds=20),
    "namespace-full": lambda: Attack(
        "namespace-full", flood=workloads.namespace_full(), finite_seconds=200, seconds=30
    ),
    "events": lambda: Attack("events", flood=workloads.events(), finite_seconds=200, seconds=10),
    "followed-logs": lambda: Attack("followed-logs", flood=workloads.followed_logs(), seconds=30),
    "evictions": lambda: Attack("evictions", flood=request_floods.evictions(), seconds=20),
}

EXTENSIONS: Final[dict[str, Made]] = {
    "custom-objects": lambda: Attack(
        "custom-objects",
        extensions.custom_definitions(),
        extensions.custom_objects(),
        seconds=25,
    ),
    "large-definitions": lambda: Attack(
        "large-definitions",
        extensions.large_definitions(),
        extensions.reading_documents(),
        seconds=25,
    ),
    "many-definitions": lambda: Attack(
        "many-definitions",
        extensions.many_definitions(),
        extensions.reading_documents(),
        seconds=25,
    ),
    "many-versions": lambda: Attack(
        "many-versions", extensions.many_versions(), extensions.reading_documents(), seconds=25
    ),
    "validating-policies": lambda: Attack(
        "validating-policies",
        extensions.policies(),
        extensions.writing_maps(200, extensions.long_policy()),
        seconds=25,
    ),
    "mutating-policies": lambda: Attack(
        "mutating-policies",
        extensions.policies(30, "Mutating"),
        extensions.writing_maps(200),
        seconds=25,
    ),
    **{
        f"webhook-{reply.__name__.replace('_', '-')}": lambda reply=reply: Attack(  # type: ignore[misc]
            f"webhook-{reply.__name__}", flood=hostile_webhooks.hostile_webhooks(reply), seconds=12
        )
        for reply in hostile_webhooks.REPLIES
    },
    "conversion": lambda: Attack(
        "conversion", flood=hostile_webhooks.hostile_conversion(), seconds=25
    ),
}

REQUESTS: Final[dict[str, Made]] = {
    "applied": lambda: Attack("applied", flood=request_floods.applied(), seconds=25),
    "json-patches": lambda: Attack("json-patches", flood=request_floods.patches(), seconds=15),
    "protobuf": lambda: Attack("protobuf", flood=request_floods.protobuf_monsters(), seconds=15),
    "selectors": lambda: Attack("selectors", flood=request_floods.selectors(), seconds=30),
    "bookmarked-watches": lambda: Attack(
        "bookmarked-watches", flood=request_floods.bookmarked_watches(), seconds=30
    ),
    "slow-readers": lambda: Attack("slow-readers", flood=request_floods.slow_readers(), seconds=25),
    "pages": lambda: Attack("pages", flood=request_floods.pages(), seconds=25),
    "bound-roles": lambda: Attack(
        "bound-roles", request_floods.bound_roles(), request_floods.access_reviews(), seconds=15
    ),
    "reviews": lambda: Attack(
        "reviews", request_floods.large_roles(), request_floods.reviews(), seconds=15
    ),
}

PRODUCTS: Final[dict[str, Made]] = {
    "products": lambda: Attack("products", flood=products.pods(), seconds=20),
    "subjects": lambda: Attack("subjects", flood=products.subjects(), seconds=20),
    "short-names": lambda: Attack("short-names", products.short_names(), seconds=15),
    "params": lambda: Attack("params", flood=products.params(), seconds=30),
    "selected": lambda: Attack("selected", flood=products.selected(), seconds=25),
}

FURTHER: Final = {**DEVICES, **CONTROLLERS, **EXTENSIONS, **REQUESTS, **PRODUCTS}
