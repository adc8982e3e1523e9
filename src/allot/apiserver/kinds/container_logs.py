"""What a simulated container has printed, from its pod's annotations and the times of its runs.

    allot.dev/log: |
      listening on port 80
      every 10s: {n} requests served

With a container's name as suffix (`allot.dev/log.web`) it is that container's. A line is printed when the container starts,
one with `every` in front of it after each such time while it runs. `{n}` counts these, `{pod}`, `{container}`, `{node}`
and `{restart}` are filled in. Without the annotation one line names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.durations import NANOSECONDS, parse_duration
from allot.api.times import read_time

ANNOTATION: Final = "allot.dev/log"
MAX_LINES: Final = 10_000
MAX_BYTES: Final = 10 * 1024 * 1024
"""Of a log, shared by the lines of the annotation; older ones are dropped, as from a log that is rotated."""
LONG_TEMPLATE: Final = 4096
_every: Final = re.compile(r"every ([0-9a-zµ.]+): ?(.*)").fullmatch
_placeholder: Final = re.compile(r"\{(n|pod|container|node|restart)\}")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class LogOptions(NamedTuple):
    """The parameters of a request for logs."""

    container: str = ""
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class LogLine(NamedTuple):
    time: datetime
    text: str

    def shown(self, *, timestamps: bool) -> bytes:
        stamp = f"{self.time:%Y-%m-%dT%H:%M:%S}.{self.time.microsecond:06d}000Z "
        return f"{stamp if timestamps else ''}{self.text}\n".encode()


class LogRefusedError(ValueError):
    """There is no such log; answered with 400."""


class Run(NamedTuple):
    """One run of a container; one that has not ended yet has no end."""

    begin: datetime
    end: datetime | None
    restart: int


def container_names(pod: Pod) -> list[str]:
    return [
        str(container.get("name", ""))
        for field in _CONTAINERS
        for container in pod.get("spec", field, default=[])
    ]


def chosen_container(pod: Pod, options: LogOptions) -> str:
    """The container that is asked for; the only one if none is named."""
    name, names = pod.metadata.name, container_names(pod)
    if options.container:
        if options.container not in names:
            raise LogRefusedError(f"container {options.container} is not valid for pod {name}")
        return options.container
    if len(names) == 1:
        return names[0]
    listed = " ".join(names)
    raise LogRefusedError(
        f"a container name must be specified for pod {name}, choose one of: [{listed}]"
    )


def find_run(pod: Pod, container: str, *, previous: bool) -> Run | None:
    """The current or last run of a container, or the one before; None if the pod has no node yet."""
    name = pod.metadata.name
    status = _status(pod, container)
    restarts = int(status.get("restartCount") or 0)
    if previous:
        run = _ended(status.get("lastState"), restarts - 1)
        if run is None:
            raise LogRefusedError(
                f'previous terminated container "{container}" in pod "{name}" not found'
            )
        return run
    state = status.get("state") or {}
    running = state.get("running") or {}
    begin = read_time(running.get("startedAt"))
    run = Run(begin, None, restarts) if begin is not None else _ended(state, restarts)
    run = run or _ended(status.get("lastState"), restarts)
    if run is None and pod.node_name:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise LogRefusedError(
            f'container "{container}" in pod "{name}" is waiting to start: {reason}'
        )
    return run


def _status(pod: Pod, container: str) -> dict[str, Any]:
    for field in _STATUSES:
        for status in pod.get("status", field, default=[]):
            if status.get("name") == container:
                found: dict[str, Any] = status
                return found
    return {}


def _ended(state: Any, restart: int) -> Run | None:
    ended = (state or {}).get("terminated") or {}
    begin, end = read_time(ended.get("startedAt")), read_time(ended.get("finishedAt"))
    return Run(begin, end or begin, restart) if begin is not None else None


def printed_lines(
    pod: Pod, container: str, run: Run, now: datetime, after: datetime | None = None
) -> list[LogLine]:
    """What the run has printed until now, or since a moment, in the order of time."""
    end = min(run.end, now) if run.end is not None else now
    lines: list[LogLine] = []
    texts = _template(pod, container).splitlines()[:MAX_LINES]
    for text in texts:
        lines += _repetitions(pod, container, run, text, (after, end), len(texts))
    return sorted(lines, key=lambda line: line.time)


def may_be_long(pod: Pod, container: str) -> bool:
    """Whether computing the lines may take long."""
    template = _template(pod, container)
    return len(template) > LONG_TEMPLATE or "every " in template


def _template(pod: Pod, container: str) -> str:
    annotations = pod.metadata.annotations
    own = annotations.get(f"{ANNOTATION}.{container}", annotations.get(ANNOTATION))
    if own is not None:
        return own
    return f"simulated container {{container}} started; annotation {ANNOTATION} says what it prints"


def _repetitions(
    pod: Pod,
    container: str,
    run: Run,
    text: str,
    period: tuple[datetime | None, datetime],
    lines: int,
) -> Iterator[LogLine]:
    """What one of so many lines of the annotation prints after the first moment and until the second."""
    after, end = period
    found = _every(text)
    interval = (parse_duration(found[1]) or 0) if found else 0
    if found is None or interval <= 0:
        if after is None or run.begin > after:
            yield LogLine(run.begin, _filled(text, pod, container, run, 0))
        return
    seconds = interval / NANOSECONDS
    count = max(int((end - run.begin).total_seconds() / seconds), 0)
    size = len(_filled(found[2], pod, container, run, count)) + 1
    most = max(min(MAX_LINES, MAX_BYTES // size) // lines, 1)
    first = max(count - most, 0) + 1
    if after is not None:
        first = max(first, int((after - run.begin).total_seconds() / seconds))
    for number in range(first, count + 1):
        moment = run.begin + timedelta(seconds=number * seconds)
        if after is None or moment > after:
            yield LogLine(moment, _filled(found[2], pod, container, run, number))


def _filled(text: str, pod: Pod, container: str, run: Run, number: int) -> str:
    values = {
        "n": str(number),
        "pod": pod.metadata.name,
        "container": container,
        "node": pod.node_name,
        "restart": str(max(run.restart, 0)),
    }
    return _placeholder.sub(lambda match: values[match[1]], text)


def selected_lines(lines: list[LogLine], options: LogOptions) -> list[LogLine]:
    """Those that the options ask for."""
    if options.since is not None:
        lines = [line for line in lines if line.time >= options.since]
    if options.tail_lines is not None:
        lines = lines[max(len(lines) - options.tail_lines, 0) :] if options.tail_lines else []
    return lines


def log_bytes(lines: list[LogLine], options: LogOptions) -> bytes:
    text = b"".join(line.shown(timestamps=options.timestamps) for line in lines)
    return text if options.limit_bytes is None else text[: options.limit_bytes]
