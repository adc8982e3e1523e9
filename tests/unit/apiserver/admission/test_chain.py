"""The admission chain: which plugins see a write, in which phase and order."""

import asyncio
from typing import Any

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.apiserver.admission.chain import (
    Admission,
    AdmissionAttributes,
    Admitted,
    NoDynamicPlugin,
    OfWholeObjects,
)
from allot.apiserver.kinds.request import Caller, RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named
from allot.storage.interface import Put
from allot.testing.servers import LocalServer

PODS, NODES = resource_named("", "pods"), resource_named("", "nodes")


class Mutating:
    """Adds its name to the object, and counts how often it is asked what it handles."""

    def __init__(self, name: str, operation: str, resource: Resource) -> None:
        self.name = name
        self.operation = operation
        self.resource = resource
        self.asked = 0

    def handles(self, operation: str, resource: Resource) -> bool:
        self.asked += 1
        return operation == self.operation and resource is self.resource

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        return attributes.new + self.name


class Validating(Mutating):
    async def admit(self, attributes: AdmissionAttributes) -> Any:
        return attributes.new

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        operation = Put(f"{self.name} of {attributes.new}", b"", 0)
        return Admitted((operation,), (f"warned by {self.name}",))


CALLER = Caller("alice", {}, lambda _: True)


def attributes(
    operation: str, resource: Resource, new: Any = "", subresource: str = ""
) -> AdmissionAttributes:
    info = RequestInfo(CALLER, "v1", operation, subresource=subresource)
    return AdmissionAttributes(operation, resource, ObjectKey("", "x"), new, None, info)


def test_only_plugins_that_handle_a_write_see_it_in_order() -> None:
    plugins = [
        Mutating("a", "create", PODS),
        Mutating("b", "create", NODES),
        Mutating("c", "delete", PODS),
        Mutating("d", "create", PODS),
    ]
    admission = Admission(plugins)

    def mutated(operation: str, resource: Resource) -> Any:
        chain = admission.chain(operation, resource)
        return asyncio.run(chain.mutate(attributes(operation, resource))).object

    assert mutated("create", PODS) == "ad"
    assert mutated("create", NODES) == "b"
    assert mutated("update", PODS) == ""
    info = attributes("create", PODS).info
    assert admission.chain("create", PODS).mutates(info)
    assert not admission.chain("update", PODS).mutates(info)


def test_plugins_are_asked_once_what_they_handle() -> None:
    plugins = [Mutating("a", "create", PODS), Mutating("b", "create", NODES)]
    chain = Admission(plugins).chain("create", PODS)

    for _ in range(3):
        assert asyncio.run(chain.mutate(attributes("create", PODS))).object == "a"
    assert {plugin.asked for plugin in plugins} == {1}


class OnlyWhole(Mutating, OfWholeObjects):
    """A plugin that has nothing to say about a status."""


def test_plugins_of_whole_objects_do_not_see_writes_of_subresources() -> None:
    plugins = [Mutating("a", "update", PODS), OnlyWhole("b", "update", PODS)]
    chain = Admission(plugins).chain("update", PODS)

    assert asyncio.run(chain.mutate(attributes("update", PODS))).object == "ab"
    part = attributes("update", PODS, subresource="status")
    assert asyncio.run(chain.mutate(part)).object == "a"
    only_whole = Admission([OnlyWhole("b", "update", PODS)]).chain("update", PODS)
    assert not only_whole.mutates(part.info)


def test_operations_and_warnings_of_validating_plugins_add_up() -> None:
    plugins = [Validating("a", "create", PODS), Validating("b", "create", PODS)]

    chain = Admission(plugins).chain("create", PODS)
    admitted = asyncio.run(chain.validate(attributes("create", PODS, "x")))

    assert [put.key for put in admitted.operations] == ["a of x", "b of x"]
    assert admitted.warnings == ("warned by a", "warned by b")


def test_plugins_without_a_phase_are_skipped_in_it() -> None:
    chain = Admission([Mutating("a", "create", PODS)]).chain("create", PODS)

    assert asyncio.run(chain.validate(attributes("create", PODS))) == Admitted()
    assert not chain.validates()


def test_writes_that_nobody_validates_need_not_be_described() -> None:
    admission = Admission([Validating("a", "create", PODS)], dynamic=NoDynamicPlugin())
    assert admission.chain("create", PODS).validates()
    updates = admission.chain("update", PODS)
    assert not updates.validates()
    updates.activity.is_idle = False
    assert updates.validates(), "a policy may have been registered"


class Charging(Validating):
    is_idle = False


def test_writes_are_charged_while_there_are_quotas() -> None:
    quota = Charging("quota", "create", PODS)
    chain = Admission(quota=quota).chain("create", PODS)
    assert chain.charges()
    assert not Admission(quota=quota).chain("update", PODS).charges()
    charged = asyncio.run(chain.charge(attributes("create", PODS, "x")))
    assert [put.key for put in charged.operations] == ["quota of x"]
    quota.is_idle = True
    assert not chain.charges()
    assert not Admission().chain("create", PODS).charges()


class Labels:
    """Labels config maps with the phase in which it sees them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource.plural == "configmaps" and operation != "delete"

    async def admit(self, attributes: AdmissionAttributes) -> RawObject:
        config_map: RawObject = attributes.new
        self.seen.append(f"admit {attributes.operation} {attributes.key.name}")
        return config_map.with_value("not a valid value!", "metadata", "labels", "mutated")

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        self.seen.append(f"validate {attributes.operation} {attributes.key.name}")
        return Admitted()


def test_mutating_plugins_run_before_validation_and_validating_ones_after() -> None:
    async def run() -> None:
        plugin = Labels()
        path = "/api/v1/namespaces/default/configmaps"
        async with LocalServer(plugins=[plugin]) as server:
            rejected = await server.ask("POST", path, {"metadata": {"generateName": "c-"}})
            assert rejected.code == 422, "what a mutating plugin writes is validated"
            assert "metadata.labels" in rejected.json["message"]
            assert plugin.seen == ["admit create c-"]

    asyncio.run(run())


class Annotates(Labels):
    async def admit(self, attributes: AdmissionAttributes) -> RawObject:
        config_map: RawObject = attributes.new
        count = str(len(self.seen))
        self.seen.append(f"admit {attributes.operation}")
        return config_map.with_value(count, "metadata", "annotations", "count")


def test_updates_and_patches_pass_mutating_plugins() -> None:
    async def run() -> None:
        plugin = Annotates()
        path = "/api/v1/namespaces/default/configmaps"
        async with LocalServer(plugins=[plugin]) as server:
            created = await server.post(path, {"metadata": {"name": "c"}})
            assert created["metadata"]["annotations"] == {"count": "0"}
            updated = await server.ask("PUT", f"{path}/c", {**created, "data": {"a": "b"}})
            assert updated.json["metadata"]["annotations"] == {"count": "2"}
            patched = await server.ask(
                "PATCH",
                f"{path}/c",
                {"data": {"a": "c"}},
                headers={"content-type": "application/merge-patch+json"},
            )
            assert patched.json["metadata"]["annotations"] == {"count": "4"}
            assert patched.json["data"] == {"a": "c"}
            assert plugin.seen == [
                "admit create",
                "validate create c",
                "admit update",
                "validate update c",
                "admit update",
                "validate update c",
            ]

    asyncio.run(run())
