"""The watch step: opens a watch, lets things happen, and looks at the events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from tests.acceptance.runner.expectations import unmet
from tests.acceptance.runner.outcome import StepFailedError
from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.rest import OpenWatch, RestClient, RestError, WatchEvent
from tests.acceptance.runner.steps import AwaitedEvent, Watch


class EventLog:
    """Collects the events of a watch while others do something else."""

    def __init__(self, watch: OpenWatch) -> None:
        self._watch = watch
        self._arrived: queue.SimpleQueue[WatchEvent | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._collect, name="watch", daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            for event in self._watch:
                self._arrived.put(event)
        finally:
            self._arrived.put(None)

    def events(self, deadline: float) -> Iterator[WatchEvent]:
        """All of them in order, until the watch ends or the time is up."""
        while (left := deadline - time.monotonic()) > 0:
            try:
                event = self._arrived.get(timeout=left)
            except queue.Empty:
                return
            if event is None:
                return
            yield event

    def close(self) -> None:
        self._watch.interrupt()
        self._thread.join()
        self._watch.close()


def perform_watch(
    step: Watch,
    client: RestClient,
    path: str,
    headers: Mapping[str, str],
    timeout_seconds: float,
    perform_inner_steps: Callable[[], None],
    save: Callable[[Mapping[str, str], Json], None],
) -> None:
    query = {"timeoutSeconds": str(int(timeout_seconds)), **step.query}
    try:
        watch = client.watch(
            path, query=query, headers=headers, timeout_seconds=timeout_seconds + 2
        )
    except RestError as refusal:
        _expect_refusal(step, refusal)
        return
    log = EventLog(watch)
    try:
        if step.expect_error is None:
            time.sleep(step.settle)
            perform_inner_steps()
        events = log.events(time.monotonic() + timeout_seconds)
        if step.expect_error is not None:
            _expect_error_event(step, events)
        else:
            _expect_events(step, events, save)
    finally:
        log.close()


def _expect_refusal(step: Watch, refusal: RestError) -> None:
    if step.expect_error is None:
        raise StepFailedError(f"the watch was refused: {refusal}")
    wrong = step.expect_error.unmet(refusal.answer.code, refusal.answer.body)
    if wrong:
        raise StepFailedError("; ".join(wrong))


def _expect_error_event(step: Watch, events: Iterator[WatchEvent]) -> None:
    """An error may also come as an event, when the watch is already open."""
    assert step.expect_error is not None
    error = next((event.object for event in events if event.type == "ERROR"), None)
    if error is None:
        raise StepFailedError("the watch had no error")
    wrong = step.expect_error.unmet(error.get("code", 0), error)
    if wrong:
        raise StepFailedError("; ".join(wrong))


def _expect_events(
    step: Watch, events: Iterator[WatchEvent], save: Callable[[Mapping[str, str], Json], None]
) -> None:
    """Other events may come between the awaited ones."""
    awaited = list(step.until)
    seen: list[WatchEvent] = []
    for event in events:
        seen.append(event)
        if awaited and _is_it(event, awaited[0]):
            save(awaited.pop(0).save, event.object)
        if step.until and not awaited:
            break
    story = ", ".join(f"{event.type} {_name(event)}" for event in seen) or "nothing"
    if awaited:
        raise StepFailedError(f"the watch saw {story}; still awaited: {awaited[0]}")
    if any(event.type in step.forbid_types for event in seen):
        raise StepFailedError(f"the watch saw what it must not: {story}")


def _is_it(event: WatchEvent, awaited: AwaitedEvent) -> bool:
    return event.type == awaited.type and not unmet(event.object, awaited.expect)


def _name(event: WatchEvent) -> str:
    return str(event.object.get("metadata", {}).get("name", ""))
