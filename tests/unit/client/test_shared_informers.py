"""Informers that get their objects from one that all components of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from allot.api.claims import ResourceClaim
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.codecs import RawCodec
from allot.client.informer import Informer, InformerFactory
from allot.client.metadata import (
    MetadataCodec,
    is_same_ownership,
    metadata_of,
    metadata_resource,
)
from allot.client.options import Scope
from allot.client.resources import CONFIG_MAPS, PODS, RESOURCE_CLAIMS
from allot.client.shared_informers import SharedFeed, SharedInformers, view_of
from tests.unit.client.fakes import FakeApi, FakeClock, settle

METADATA = metadata_resource("", "v1", "configmaps", "ConfigMap", namespaced=True)


class Process:
    """Shared informers, and factories of components that use them."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.client = Client(self.api, clock=FakeClock(hasty=True))
        self.shared = SharedInformers(self.client)
        self.log: list[str] = []

    def component(self) -> InformerFactory:
        return InformerFactory(self.client, sources=self.shared)

    def listen(self, name: str, informer: Informer[RawObject]) -> None:
        informer.add_handlers(
            lambda obj: self.log.append(f"{name}+{obj.metadata.name}"),
            lambda _, new: self.log.append(f"{name}~{new.metadata.name}"),
            lambda obj: self.log.append(f"{name}-{obj.metadata.name}"),
        )

    def take(self) -> str:
        told, self.log = " ".join(self.log), []
        return told


def play(story: Callable[[Process], Awaitable[None]]) -> None:
    async def main() -> None:
        process = Process()
        process.api.put("a")
        await story(process)
        await process.shared.stop()

    asyncio.run(main())


def test_components_get_the_same_object_from_one_watch() -> None:
    async def story(process: Process) -> None:
        factories = [process.component() for _ in range(3)]
        informers = [factory.informer(CONFIG_MAPS) for factory in factories]
        for number, informer in enumerate(informers):
            process.listen(str(number), informer)
        for factory in factories:
            factory.start()
            await factory.wait_synced()
        process.take()
        process.api.put("b")
        await settle()

        assert process.take() == "0+b 1+b 2+b"
        assert process.api.watches == 1
        (key,) = [obj.key for obj in informers[0].list() if obj.metadata.name == "b"]
        assert len({id(informer.get(key)) for informer in informers}) == 1
        assert {informer.resource_version for informer in informers} == {str(process.api.revision)}
        for factory in factories:
            await factory.stop()

    play(story)


def test_a_component_that_starts_again_hears_of_what_it_missed() -> None:
    async def story(process: Process) -> None:
        other, factory = process.component(), process.component()
        other.informer(CONFIG_MAPS)
        informer = factory.informer(CONFIG_MAPS)
        process.listen("", informer)
        other.start()
        factory.start()
        await factory.wait_synced()
        await factory.stop()
        process.take()
        process.api.delete("a")
        process.api.put("b")
        await settle()
        assert process.take() == "", "it does not run"
        factory.start()
        await settle()

        assert sorted(process.take().split()) == ["+b", "-a"]
        new = process.component()
        late = new.informer(CONFIG_MAPS)
        new.start()
        await new.wait_synced()
        assert [obj.metadata.name for obj in late.list()] == ["b"]
        assert process.api.watches == 1
        for each in (other, factory, new):
            await each.stop()

    play(story)


def test_metadata_comes_from_complete_objects_if_those_are_watched() -> None:
    async def story(process: Process) -> None:
        factory = process.component()
        alone = factory.new_informer(METADATA)
        factory.informer(CONFIG_MAPS)
        derived = factory.new_informer(METADATA)
        factory.start()
        await factory.wait_synced()
        derived.start()
        await derived.wait_synced()
        assert process.api.watches == 1
        assert [obj.metadata.name for obj in derived.list()] == ["a"]
        alone.start()
        await alone.wait_synced()
        assert process.api.watches == 2
        assert alone.list() == derived.list()
        process.api.delete("a")
        await settle()
        assert not derived.list()
        for each in (alone, derived, factory):
            await each.stop()

    play(story)


def test_metadata_of_an_object_is_what_its_codec_reads() -> None:
    owner = OwnerReference("v1", "Pod", "p", "u", True)
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    meta = ObjectMeta(
        name="c", namespace="n", uid="1", resource_version="7", deletion_timestamp=time,
        deletion_grace_period_seconds=0, owner_references=(owner,), finalizers=("f",),
        labels={"a": "b"},
    )  # fmt: skip
    for each in (meta, ObjectMeta(name="c")):
        claim = ResourceClaim(metadata=each)
        body = RESOURCE_CLAIMS.codec.encode(claim)
        read = MetadataCodec().decode(body)

        assert metadata_of(claim) == read
        assert metadata_of(RawObject.from_json(body)) == read


def test_updates_that_mean_nothing_are_left_out() -> None:
    """The next update is compared with the one before it, not with what was shown."""

    def owned(version: int, *owners: str, **metadata: object) -> RawObject:
        references = [{"uid": uid} for uid in owners]
        return RawObject(
            {
                "metadata": {
                    "name": "p", "namespace": "n", "uid": "u", "resourceVersion": str(version),
                    "ownerReferences": references, **metadata,
                }
            }
        )  # fmt: skip

    async def story(process: Process) -> None:
        factory = process.component()
        whole = factory.informer(CONFIG_MAPS)
        part = factory.new_informer(METADATA, ignored=is_same_ownership)
        seen: list[str] = []
        part.add_handlers(
            lambda new: seen.append(f"+{new.metadata.resource_version}"),
            lambda _, new: seen.append(f"~{new.metadata.resource_version}"),
            lambda old: seen.append(f"-{old.metadata.resource_version}"),
        )
        factory.start()
        part.start()
        await part.wait_synced()
        shared = process.shared._informer(CONFIG_MAPS)
        for obj in (
            owned(11),
            owned(12, labels={"a": "b"}),
            owned(13, finalizers=["f"]),
            owned(14, "o"),
            owned(15, "o", labels={"a": "c"}),
            owned(16),
            owned(17, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"]),
            owned(18, deletionTimestamp="2026-01-01T00:00:00Z"),
        ):
            shared.put(obj)
        shared.drop(owned(11).key, owned(19))

        assert seen[1:] == ["+11", "~14", "~16", "~17", "~18", "-19"]
        assert [obj.key.name for obj in part.list()] == [obj.key.name for obj in whole.list()]
        await part.stop()
        await factory.stop()

    play(story)


@pytest.mark.parametrize(
    ("scope", "is_in"),
    [
        pytest.param(Scope(), True, id="everything"),
        pytest.param(Scope("default"), True, id="namespace"),
        pytest.param(Scope("other"), False, id="other-namespace"),
        pytest.param(Scope(field_selector="status.phase!=Failed"), True, id="unequal"),
        pytest.param(Scope(field_selector="status.phase!=Running"), False, id="not-unequal"),
        pytest.param(Scope(field_selector="status.phase=Running"), True, id="equal"),
        pytest.param(Scope(field_selector="status.phase==Failed"), False, id="not-equal"),
        pytest.param(Scope(field_selector="spec.nodeName!="), False, id="empty"),
        pytest.param(
            Scope(field_selector="status.phase!=Failed,spec.nodeName="), True, id="several"
        ),
    ],
)
def test_scopes_select_as_the_server_does(scope: Scope, is_in: bool) -> None:
    pod = RawObject(
        {"metadata": {"name": "p", "namespace": "default"}, "status": {"phase": "Running"}}
    )
    view = view_of(scope)

    assert view is not None
    assert view(pod) is (pod if is_in else None)


def test_label_selectors_are_left_to_the_server() -> None:
    process = Process()

    assert process.shared.source(PODS, Scope(label_selector="a=b")) is None
    assert process.shared.source(PODS, Scope(field_selector="spec.nodeName!=")) is not None
    assert process.shared.source(CONFIG_MAPS, Scope("one")) is None, "others need not be read"


def test_an_object_that_leaves_the_scope_is_deleted_there() -> None:
    """With the last state that was in the scope, as in a watch with selectors."""

    def pod(phase: str, version: str) -> RawObject:
        metadata = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": version}
        return RawObject({"metadata": metadata, "status": {"phase": phase}})

    async def story(process: Process) -> None:
        log: list[str] = []
        whole = process.component().informer(CONFIG_MAPS)
        part: Informer[RawObject] = Informer(process.client, CONFIG_MAPS)
        part.add_handlers(
            lambda new: log.append(f"+{new.get('status', 'phase')}"),
            lambda _, new: log.append(f"~{new.get('status', 'phase')}"),
            lambda old: log.append(f"-{old.get('status', 'phase')}"),
        )
        view = view_of(Scope(field_selector="status.phase!=Failed"))
        assert view is not None
        feed = SharedFeed(whole, view, part)
        following = asyncio.create_task(feed.run())
        await settle()
        log.clear()
        for number, phase in enumerate(("Pending", "Running", "Failed", "Failed", "Running")):
            whole.put(pod(phase, str(number)))
        whole.drop(pod("", "").key, pod("Unknown", "9"))
        following.cancel()
        await settle()
        whole.put(pod("Running", "10"))

        assert log == ["+Pending", "~Running", "-Running", "+Running", "-Unknown"]
        await whole.stop()

    play(story)


def test_events_are_compared_once_for_all_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an event is news is decided in the shared informer, however many informers follow it."""
    compared: list[str] = []
    uid = RawCodec.uid

    def counted(codec: RawCodec[RawObject], obj: RawObject) -> str:
        compared.append(obj.metadata.name)
        return uid(codec, obj)

    async def story(process: Process) -> None:
        factories = [process.component() for _ in range(3)]
        for number, factory in enumerate(factories):
            process.listen(str(number), factory.informer(CONFIG_MAPS))
            factory.start()
            await factory.wait_synced()
        process.take()
        monkeypatch.setattr(RawCodec, "uid", counted)
        process.api.put("a")
        await settle()

        assert process.take() == "0~a 1~a 2~a"
        assert compared == ["a", "a"], "the old and the new version"
        for factory in factories:
            await factory.stop()

    play(story)
