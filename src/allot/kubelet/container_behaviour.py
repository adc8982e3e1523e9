"""The behaviour of simulated containers, from the annotations of their pod.

    allot.dev/run-seconds: "30"          how long containers run; "forever"
    allot.dev/exit-code: "1,1,0"         exit codes: of the first run, the second, and all further ones
    allot.dev/start-seconds: "5"         how long the pod is prepared before anything runs
    allot.dev/ready-seconds: "3"         how long containers run before they are ready
    allot.dev/stop-seconds: "8"          how long the pod takes to stop when it is deleted

With a container's name as suffix (`allot.dev/run-seconds.worker`), run-seconds, exit-code and ready-seconds apply to that
container only. Init containers succeed immediately, unless an annotation names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from allot.api.core import Pod
from allot.kubelet.settings import (
    EXIT_CODE,
    FOREVER,
    READY_SECONDS,
    RUN_SECONDS,
    START_SECONDS,
    STOP_SECONDS,
    KubeletSettings,
)


@dataclass(frozen=True)
class ContainerBehaviour:
    """How the containers of one pod behave. Invalid values are ignored, and listed in `problems`."""

    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    default_run_seconds: float | None = None
    run_seconds_by_container: Mapping[str, float | None] = field(default_factory=dict)
    exit_codes_by_container: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ready_seconds_by_container: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    completes: bool = False
    """Its containers are not restarted, whatever its restart policy."""

    def run_seconds(self, container: str, *, is_init: bool = False) -> float | None:
        """How long the container runs; None: until it is stopped."""
        found = self.run_seconds_by_container
        if container in found:
            return found[container]
        if is_init:
            return 0.0
        return found.get("", self.default_run_seconds)

    def exit_code(self, container: str, run: int, *, is_init: bool = False) -> int:
        """The exit code of run number `run`, counted from 0."""
        by_container = self.exit_codes_by_container
        fallback = () if is_init else by_container.get("", ())
        codes = by_container.get(container, fallback) or (0,)
        return codes[min(run, len(codes) - 1)]

    def ready_seconds(self, container: str) -> float:
        found = self.ready_seconds_by_container
        return found.get(container, found.get("", 0.0))


def container_behaviour(pod: Pod, settings: KubeletSettings) -> ContainerBehaviour:
    annotations = pod.metadata.annotations
    completes = _completes(pod, settings)
    default = 0.0 if completes else _default_run_seconds(pod, settings)
    if not any(name.startswith("allot.dev/") for name in annotations):
        return ContainerBehaviour(
            settings.start_seconds, default_run_seconds=default, completes=completes
        )
    run: dict[str, float | None] = {}
    ready: dict[str, float] = {}
    codes: dict[str, tuple[int, ...]] = {}
    start, stop = settings.start_seconds, 0.0
    problems = []
    for name, text in annotations.items():
        try:
            if name == START_SECONDS:
                start = _seconds(text)
            elif name == STOP_SECONDS:
                stop = _seconds(text)
            elif (container := _about(name, RUN_SECONDS)) is not None:
                run[container] = None if text == FOREVER else _seconds(text)
            elif (container := _about(name, READY_SECONDS)) is not None:
                ready[container] = _seconds(text)
            elif (container := _about(name, EXIT_CODE)) is not None:
                codes[container] = tuple(_exit_code(part) for part in text.split(","))
        except ValueError as error:
            problems.append(f"annotation {name}: {text!r} is not {error}")
    return ContainerBehaviour(start, stop, default, run, codes, ready, tuple(problems), completes)


def _completes(pod: Pod, settings: KubeletSettings) -> bool:
    annotation = settings.complete_annotation
    return bool(annotation) and pod.metadata.annotations.get(annotation) == "true"


def _default_run_seconds(pod: Pod, settings: KubeletSettings) -> float | None:
    if settings.job_run_seconds is not None and any(
        owner.kind == "Job" and owner.controller for owner in pod.metadata.owner_references
    ):
        return settings.job_run_seconds
    return settings.run_seconds


def _about(name: str, prefix: str) -> str | None:
    """The container that an annotation applies to, empty for all; None for other annotations."""
    if name == prefix:
        return ""
    return name[len(prefix) + 1 :] or None if name.startswith(prefix + ".") else None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("a number of seconds")
    return seconds


def _exit_code(text: str) -> int:
    if not text.strip().isdecimal() or int(text) > 255:
        raise ValueError("a list of exit codes from 0 to 255")
    return int(text)
