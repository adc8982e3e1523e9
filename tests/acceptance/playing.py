"""Many scenarios at a time on one cluster, for tests that each want to know about one of them.

Most of a scenario is waiting, so many at a time take little longer than the longest. With several pytest
workers the first that asks plays all scenarios and writes down how each ended; the others read that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from tests.acceptance.runner.acceptance import AcceptanceRunner
from tests.acceptance.runner.outcome import ScenarioFailedError
from tests.acceptance.runner.scenarios import Scenario

AT_A_TIME = 8
POLL_SECONDS = 0.05
DEADLINE_SECONDS = 170.0

Opening = Callable[[], AbstractContextManager[AcceptanceRunner]]
Listener = Callable[[Scenario, str], None]
"""Is told how a scenario ended: nothing if well, otherwise why not."""


def play(runner: AcceptanceRunner, scenarios: Sequence[Scenario], tell: Listener) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for scenario in scenarios:
            pool.submit(runner.run, scenario).add_done_callback(partial(_tell, scenario, tell))


def _tell(scenario: Scenario, tell: Listener, done: Future[None]) -> None:
    error = done.exception()
    well_put = error is None or isinstance(error, ScenarioFailedError)
    tell(scenario, str(error or "") if well_put else f"{scenario.name}: {error!r}")


def failures(runner: AcceptanceRunner, scenarios: Sequence[Scenario]) -> list[str]:
    """Why some did not end well."""
    found: list[str] = []
    play(runner, scenarios, lambda _, reason: found.append(reason))
    assert len(found) == len(scenarios)
    return sorted(filter(None, found))


class Endings:
    """How scenarios ended, in a directory that several processes share."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begin(self) -> bool:
        """Whether it is ours to play them."""
        try:
            self._directory.mkdir()
        except FileExistsError:
            return False
        return True

    def write(self, scenario: Scenario, reason: str) -> None:
        part = self._directory / f"{scenario.name}.part"
        part.write_text(reason)
        part.rename(self._directory / scenario.name)

    def find(self, scenario: Scenario) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self._directory / scenario.name).read_text()
        return None

    def wait_for(self, scenario: Scenario) -> str:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (reason := self.find(scenario)) is None:
            assert time.monotonic() < deadline, f"{scenario.name} was not played"
            time.sleep(POLL_SECONDS)
        return reason


@contextmanager
def played(endings: Endings, scenarios: Sequence[Scenario], opening: Opening) -> Iterator[Endings]:
    """Scenarios are played beside the block, here or in another process."""
    if not endings.begin():
        yield endings
        return
    with ThreadPoolExecutor(1) as background:
        playing = background.submit(_open_and_play, endings, scenarios, opening)
        yield endings
        playing.result()


def _open_and_play(endings: Endings, scenarios: Sequence[Scenario], opening: Opening) -> None:
    try:
        with opening() as runner:
            play(runner, scenarios, endings.write)
    except BaseException as error:
        for scenario in scenarios:
            if endings.find(scenario) is None:
                endings.write(scenario, f"there was no cluster to play it on: {error}")
        raise
