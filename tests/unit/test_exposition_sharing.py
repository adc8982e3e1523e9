"""Many readers of metrics cost little more than one. Counted in pages and in seconds of a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import current_thread, main_thread
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from allot import exposition_sharing
from allot.exposition import Exposition, exposition
from allot.exposition_sharing import MAX_PAUSE_SECONDS, SharedExposition, shared_exposition

OPEN_METRICS = "application/openmetrics-text"


class Pages:
    """Makes pages that take some seconds of a fake clock."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.began: list[float] = []
        self.seconds = seconds
        self.is_making = False
        self.shared = SharedExposition(self.make, lambda: self.now, self.sleep)

    async def make(self, accept: str) -> Exposition:
        assert not self.is_making
        self.is_making = True
        self.began.append(self.now)
        number = len(self.began)
        await asyncio.sleep(0)
        self.now += self.seconds
        self.is_making = False
        return Exposition(str(number).encode(), accept)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_readers_at_the_same_time_share_a_page() -> None:
    async def main() -> None:
        pages = Pages(0.1)
        seen = await asyncio.gather(*(pages.shared.page("") for _ in range(100)))
        assert {page.body for page in seen} == {b"1"}
        assert (await pages.shared.page("")).body == b"2"

    asyncio.run(main())


def test_a_page_is_never_older_than_the_request() -> None:
    async def main() -> None:
        pages = Pages(0.1)
        first = asyncio.create_task(pages.shared.page(""))
        while not pages.began:
            await asyncio.sleep(0)
        second = asyncio.create_task(pages.shared.page(""))
        assert [(await first).body, (await second).body] == [b"1", b"2"]

    asyncio.run(main())


@pytest.mark.parametrize(("seconds", "pause"), [(0.1, 0.4), (5.0, MAX_PAUSE_SECONDS)])
def test_readers_get_a_bounded_share_of_the_time(seconds: float, pause: float) -> None:
    async def main() -> None:
        pages = Pages(seconds)

        async def read(accept: str) -> None:
            for _ in range(5):
                assert (await pages.shared.page(accept)).content_type == accept

        await asyncio.gather(*(read(accept) for accept in ("", OPEN_METRICS) for _ in range(10)))
        assert len(pages.began) == 10
        assert pages.began == pytest.approx([number * (seconds + pause) for number in range(10)])

    asyncio.run(main())


def test_a_reader_that_leaves_does_not_take_the_page_along() -> None:
    async def main() -> None:
        pages = Pages(0.1)
        leaving = asyncio.create_task(pages.shared.page(""))
        staying = asyncio.create_task(pages.shared.page(""))
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).body == b"1"

    asyncio.run(main())


def test_a_failure_is_for_those_who_asked() -> None:
    async def main() -> None:
        answers: Iterator[ValueError | Exposition] = iter([ValueError("no"), Exposition(b"", "")])

        async def make(_: str) -> Exposition:
            answer = next(answers)
            if isinstance(answer, ValueError):
                raise answer
            return answer

        shared = SharedExposition(make)
        with pytest.raises(ValueError, match="no"):
            await shared.page("")
        assert await shared.page("") == Exposition(b"", "")

    asyncio.run(main())


def test_metrics_are_collected_on_the_event_loop_and_made_text_beside_it(
    monkeypatch: Any,
) -> None:
    collecting: list[bool] = []
    encoding: list[bool] = []

    class Noting(CollectorRegistry):
        def collect(self) -> Any:
            collecting.append(current_thread() is main_thread())
            return super().collect()

    def noted(registry: CollectorRegistry, accept: str) -> Exposition:
        encoding.append(current_thread() is main_thread())
        return exposition(registry, accept)

    monkeypatch.setattr(exposition_sharing, "exposition", noted)
    registry = Noting()
    Counter("seen", "Seen.", registry=registry).inc(3)
    shared = shared_exposition(lambda: registry)
    page = asyncio.run(shared.page(""))
    assert page == exposition(registry, "")
    assert b"seen_total 3.0" in page.body
    assert collecting[:1] == [True]
    assert encoding == [False]
