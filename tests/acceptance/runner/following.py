"""Following a collection: what stands in for a node or a controller sees every object and change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.rest import CONNECTION_ERRORS, OpenWatch, RestClient, RestError

log = logging.getLogger(__name__)
RETRY_SECONDS = 0.1
WATCH_SECONDS = 300


class Follower:
    """Calls `react` in a thread of its own with each object there is, and again when it changes.

    If the server refuses something, it says so in the log and starts over with a list, so `react`
    meets the object again.
    """

    def __init__(self, client: RestClient, path: str, react: Callable[[Json], None]) -> None:
        self._client, self._path, self._react = client, path, react
        self._stopping = threading.Event()
        self._watch: OpenWatch | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing more will be done."""
        self._stopping.set()
        while self._thread.is_alive():
            watch = self._watch
            if watch is not None:
                watch.interrupt()
            self._thread.join(0.05)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except (RestError, *CONNECTION_ERRORS) as error:
                if not self._stopping.is_set():
                    log.warning("%s: %s", self._path, error)
                    self._stopping.wait(RETRY_SECONDS)

    def _follow(self) -> None:
        listing = self._client.call("GET", self._path)
        for each in listing["items"]:
            self._react(each)
        watch = self._client.watch(
            self._path,
            query={
                "resourceVersion": listing["metadata"]["resourceVersion"],
                "timeoutSeconds": WATCH_SECONDS,
            },
            timeout_seconds=WATCH_SECONDS + 10,
        )
        try:
            self._watch = watch
            for event in watch:
                if event.type == "ERROR" or self._stopping.is_set():
                    return
                if event.type in {"ADDED", "MODIFIED"}:
                    self._react(event.object)
        finally:
            self._watch = None
            watch.close()
