"""What simulated containers print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.times import written_time
from allot.apiserver.kinds.container_logs import (
    MAX_BYTES,
    MAX_LINES,
    LogLine,
    LogOptions,
    LogRefusedError,
    chosen_container,
    find_run,
    log_bytes,
    printed_lines,
    selected_lines,
)
from allot.testing.builders import a_pod

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = BEGIN + timedelta(seconds=35)


def logged_pod(
    log: str | None = None, *, containers: tuple[str, ...] = ("web",), **status: Any
) -> Pod:
    running = {"state": {"running": {"startedAt": written_time(BEGIN)}}}
    return a_pod(
        "p",
        node="n1",
        metadata={"annotations": {} if log is None else {"allot.dev/log": log}},
        containers=[{"name": name} for name in containers],
        status={
            "containerStatuses": [{"name": name, **(status or running)} for name in containers]
        },
    )


def printed(pod: Pod, options: LogOptions = LogOptions()) -> list[str]:  # noqa: B008 - a value
    container = chosen_container(pod, options)
    run = find_run(pod, container, previous=options.previous)
    assert run is not None
    lines = selected_lines(printed_lines(pod, container, run, NOW), options)
    return log_bytes(lines, options).decode().splitlines()


LOG = "hello from {pod} on {node}\nevery 10s: {n} requests"


def test_lines_at_the_start_and_again_and_again() -> None:
    assert printed(logged_pod(LOG)) == [
        "hello from p on n1",
        "1 requests",
        "2 requests",
        "3 requests",
    ]


def test_tail_since_bytes_and_timestamps() -> None:
    pod = logged_pod(LOG)

    assert printed(pod, LogOptions(tail_lines=1)) == ["3 requests"]
    assert printed(pod, LogOptions(tail_lines=0)) == []
    since = NOW - timedelta(seconds=20)
    assert printed(pod, LogOptions(since=since)) == ["2 requests", "3 requests"]
    assert printed(pod, LogOptions(limit_bytes=5)) == ["hello"]
    [first, *_] = printed(pod, LogOptions(timestamps=True))
    assert first == "2026-01-01T00:00:00.000000000Z hello from p on n1"


def test_a_container_that_has_ended_prints_no_more() -> None:
    ended = {"startedAt": written_time(BEGIN), "finishedAt": "2026-01-01T00:00:15Z"}
    again = {"running": {"startedAt": "2026-01-01T00:00:20Z"}}
    pod = logged_pod(LOG, state=again, lastState={"terminated": ended}, restartCount=1)

    assert printed(pod) == ["hello from p on n1", "1 requests"]
    assert printed(pod, LogOptions(previous=True)) == ["hello from p on n1", "1 requests"]


def test_without_an_annotation_a_line_names_it() -> None:
    [line] = printed(logged_pod())

    assert "allot.dev/log" in line


def test_a_container_of_its_own() -> None:
    pod = logged_pod(LOG, containers=("web", "side")).with_value(
        {"allot.dev/log.side": "quiet"}, "metadata", "annotations"
    )

    assert printed(pod, LogOptions("side")) == ["quiet"]


@pytest.mark.parametrize(
    ("pod", "options", "why"),
    [
        (logged_pod(), LogOptions("zz"), "container zz is not valid for pod p"),
        (
            logged_pod(containers=("a", "b")),
            LogOptions(),
            "a container name must be specified for pod p, choose one of: [a b]",
        ),
        (
            logged_pod(),
            LogOptions(previous=True),
            'previous terminated container "web" in pod "p" not found',
        ),
        (
            logged_pod(state={"waiting": {"reason": "ContainerCreating"}}),
            LogOptions(),
            'container "web" in pod "p" is waiting to start: ContainerCreating',
        ),
    ],
)
def test_refusals(pod: Pod, options: LogOptions, why: str) -> None:
    with pytest.raises(LogRefusedError) as refused:
        printed(pod, options)

    assert str(refused.value) == why


def lines_of(pod: Pod, after: timedelta | None = None) -> list[LogLine]:
    run = find_run(pod, chosen_container(pod, LogOptions()), previous=False)
    assert run is not None
    return printed_lines(pod, "web", run, NOW, None if after is None else NOW - after)


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("every 1us: x", id="a-short-interval"),
        pytest.param("every 1us: x\n" * 20_000, id="many-lines"),
        pytest.param("\n" * 250_000, id="lines-at-the-start"),
        pytest.param("every 1ms: " + "x" * 200_000, id="a-long-line"),
        pytest.param("every 1ms: " + "{pod}" * 40_000, id="a-line-that-grows"),
    ],
)
def test_a_log_is_bounded(template: str) -> None:
    found = lines_of(logged_pod(template))

    assert 0 < len(found) <= MAX_LINES
    assert sum(len(line.text) + 1 for line in found) <= MAX_BYTES + 200_000


def test_the_newest_lines_are_kept() -> None:
    assert [line.text for line in lines_of(logged_pod("every 1ms: {n}"))][-1] == "35000"


@pytest.mark.parametrize("template", [LOG, "every 7s: {n}", "every 1500ms: {n}"])
def test_what_follows_is_what_was_not_there_before(template: str) -> None:
    pod = logged_pod(template)
    for seconds in (0, 1, 5, 10, 12, 20, 29, 30, 31):
        moment = NOW - timedelta(seconds=seconds)
        new = [line for line in lines_of(pod) if line.time > moment]
        assert lines_of(pod, timedelta(seconds=seconds)) == new
