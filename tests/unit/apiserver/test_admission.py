import asyncio
from typing import Any, cast

from allot.api.identities import ObjectKey
from allot.apiserver.admission.chain import Admission, Admitted, Attempt
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.caches import resource_named

PODS, NODES = resource_named("", "pods"), resource_named("", "nodes")


class Plugin:
    """Adds its name to what it admits, and counts how often it is asked what it handles."""

    def __init__(self, name: str, verb: str, resource: Resource) -> None:
        self.name = name
        self.verb = verb
        self.resource = resource
        self.asked = 0

    def handles(self, verb: str, resource: Resource) -> bool:
        self.asked += 1
        return verb == self.verb and resource is self.resource

    async def admit(self, attempt: Attempt) -> Admitted:
        return Admitted(attempt.new + self.name, (), (f"warned by {self.name}",))


def test_only_plugins_that_handle_a_write_see_it_in_order() -> None:
    plugins = [
        Plugin("a", "create", PODS),
        Plugin("b", "create", NODES),
        Plugin("c", "delete", PODS),
        Plugin("d", "create", PODS),
    ]
    admission = Admission(plugins)

    def admitted(verb: str, resource: Resource) -> Admitted:
        attempt = Attempt(verb, resource, ObjectKey("", "x"), "", None, cast("Any", None))
        return asyncio.run(admission.admit(attempt))

    for _ in range(3):
        found = admitted("create", PODS)
        assert (found.object, found.warnings) == ("ad", ("warned by a", "warned by d"))
        assert admitted("create", NODES).object == "b"
        assert admitted("update", PODS).object == ""
    assert {plugin.asked for plugin in plugins} == {3}
