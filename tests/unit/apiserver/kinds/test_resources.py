"""What is made of each resource is made once, and ends with the resource or with who made it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from allot.apiserver.kinds.resources import ByResource, Resource
from allot.apiserver.watch_cache.caches import resource_named

PODS = resource_named("", "pods")


def test_something_is_made_once_for_each_resource() -> None:
    asked: list[str] = []

    def make(resource: Resource) -> list[str]:
        asked.append(resource.plural)
        return [resource.plural]

    made, others = ByResource(make), ByResource(lambda resource: [resource.group])

    assert made[PODS] is made[PODS]
    assert (made[PODS], others[PODS], asked) == (["pods"], [""], ["pods"])


def test_what_is_made_of_a_custom_resource_is_kept_with_it() -> None:
    custom: Any = object()
    widgets = replace(PODS, custom=custom, derived={})
    made = ByResource(lambda resource: [resource.plural])

    assert made[widgets] is made[widgets]
    assert widgets not in made
    assert list(widgets.derived.values()) == [["pods"]]
