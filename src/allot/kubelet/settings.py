"""What can be chosen about simulated nodes, and the names by which objects choose for themselves."""

from __future__ import annotations

from typing import Final, NamedTuple

SIMULATED_LABEL: Final = "allot.dev/simulated"
"""Nodes that have it with the value "true" are served."""
OFFLINE: Final = "allot.dev/offline"
"""A node with this annotation and the value "true" is left alone, as if it had lost its power."""

RUN_SECONDS: Final = "allot.dev/run-seconds"
EXIT_CODE: Final = "allot.dev/exit-code"
START_SECONDS: Final = "allot.dev/start-seconds"
READY_SECONDS: Final = "allot.dev/ready-seconds"
STOP_SECONDS: Final = "allot.dev/stop-seconds"
FOREVER: Final = "forever"


class RestartBackoff(NamedTuple):
    """How long a container waits before it runs again: not at all the first time, then longer and longer."""

    first_seconds: float = 10.0
    most_seconds: float = 300.0
    forgiven_after_seconds: float = 600.0
    """Whoever ran so long is restarted at once."""

    def seconds(self, restarts: int, ran_seconds: float) -> float:
        if not restarts or ran_seconds >= self.forgiven_after_seconds:
            return 0.0
        return min(self.first_seconds * 2.0 ** min(restarts - 1, 32), self.most_seconds)


class KubeletSettings(NamedTuple):
    """How nodes and pods behave that do not say otherwise."""

    all_nodes: bool = False
    """Serve every node, not only those with the label."""
    run_seconds: float | None = None
    """How long containers run; None: until they are stopped."""
    job_run_seconds: float | None = None
    """The same for pods of Jobs; None: as all others."""
    start_seconds: float = 0.0
    complete_annotation: str = ""
    """Pods that have it with the value "true" are done as soon as they start."""
    backoff: RestartBackoff = RestartBackoff()
    lease_seconds: int = 40
    renew_seconds: float = 10.0
    heartbeat_seconds: float = 300.0
    """A status that does not change is written again after so long."""

    @property
    def node_selector(self) -> str:
        return "" if self.all_nodes else f"{SIMULATED_LABEL}=true"
