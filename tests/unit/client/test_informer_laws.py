"""Whatever happens on the way: the store ends up as the server is, and handlers saw one story."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.informer import Informer
from allot.client.resources import CONFIG_MAPS
from tests.unit.client.fakes import LOST, FakeApi, FakeClock, answer, settle, status

NAMES = ("a", "b", "c")
Step = tuple[str, Callable[[FakeApi], None]]


def _trouble(api: FakeApi) -> None:
    api.trouble.append(LOST)


def _expire(api: FakeApi) -> None:
    api.trouble.append(answer(410, status(410, "Expired")))


steps = st.one_of(
    st.sampled_from(NAMES).map(lambda name: (f"put {name}", lambda api: api.put(name))),
    st.sampled_from(NAMES).map(lambda name: (f"delete {name}", lambda api: api.delete(name))),
    st.sampled_from(
        [
            ("cut", FakeApi.cut),
            ("end", FakeApi.end),
            ("compact", FakeApi.compact),
            ("trouble", _trouble),
            ("expire", _expire),
        ]
    ),
)


class Story:
    """Checks that every object is added, then updated, then deleted, with newer versions each time."""

    def __init__(self) -> None:
        self.known: dict[str, RawObject] = {}

    def add(self, obj: RawObject) -> None:
        assert obj.metadata.name not in self.known, "added twice"
        self.known[obj.metadata.name] = obj

    def update(self, old: RawObject, new: RawObject) -> None:
        assert self.known[new.metadata.name] is old, "an update of something else"
        assert old.metadata.uid == new.metadata.uid
        assert int(old.metadata.resource_version) < int(new.metadata.resource_version)
        self.known[new.metadata.name] = new

    def delete(self, obj: RawObject) -> None:
        known = self.known.pop(obj.metadata.name)
        assert known.metadata.uid == obj.metadata.uid


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(steps, st.integers(0, 12)), max_size=40),
    st.booleans(),
    st.sampled_from([1, 60, 1000]),
)
def test_the_store_follows(script: list[tuple[Step, int]], streaming: bool, piece: int) -> None:
    async def main() -> None:
        api = FakeApi(streaming=streaming, piece=piece if len(script) < 12 else max(piece, 60))
        informer = Informer(Client(api, clock=FakeClock(hasty=True)), CONFIG_MAPS)
        failures: list[BaseException] = []
        story = Story()

        def guarded(check: Callable[..., None]) -> Callable[..., None]:
            def call(*objects: RawObject) -> None:
                try:
                    check(*objects)
                except (AssertionError, KeyError) as error:
                    failures.append(error)

            return call

        informer.add_handlers(guarded(story.add), guarded(story.update), guarded(story.delete))
        informer.start()
        for (_, do), rounds in script:
            do(api)
            await settle(rounds)
        api.trouble.clear()
        for _ in range(20_000):
            if informer.resource_version == str(api.revision):
                break
            await asyncio.sleep(0)
        await settle()
        shown = {obj.metadata.name: obj.data for obj in informer.store}
        assert shown == api.objects
        assert {name: obj.data for name, obj in story.known.items()} == api.objects
        assert not failures
        await informer.stop()

    asyncio.run(main())
