"""Settings of simulated nodes, and the labels and annotations that override them."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.backoff import Backoff

SIMULATED_LABEL: Final = "allot.dev/simulated"
"""Nodes with the value "true" are simulated."""
OFFLINE: Final = "allot.dev/offline"
"""A node with this annotation and the value "true" sends no heartbeats, as if it had lost its power."""

RUN_SECONDS: Final = "allot.dev/run-seconds"
EXIT_CODE: Final = "allot.dev/exit-code"
START_SECONDS: Final = "allot.dev/start-seconds"
READY_SECONDS: Final = "allot.dev/ready-seconds"
STOP_SECONDS: Final = "allot.dev/stop-seconds"
FOREVER: Final = "forever"

HOLD: Final = "hold"
SIMULATE: Final = "simulate"


class RestartBackoff(NamedTuple):
    """The backoff of container restarts: the first restart is immediate, then it grows."""

    backoff: Backoff = Backoff(initial_seconds=10.0, max_seconds=300.0)
    reset_after_seconds: float = 600.0
    """A container that ran this long is restarted immediately."""

    def seconds(self, restarts: int, ran_seconds: float) -> float:
        return 0.0 if ran_seconds >= self.reset_after_seconds else self.backoff.seconds(restarts)


class KubeletSettings(NamedTuple):
    """The defaults of nodes and pods without annotations."""

    all_nodes: bool = False
    """Simulate every node, not only those with the label."""
    run_seconds: float | None = None
    """How long containers run; None: until they are stopped."""
    job_run_seconds: float | None = None
    """The same for pods of Jobs; None: like other pods."""
    start_seconds: float = 0.0
    complete_annotation: str = ""
    """Pods with this annotation and the value "true" complete as soon as they start."""
    backoff: RestartBackoff = RestartBackoff()
    lease_seconds: int = 40
    renew_seconds: float = 10.0
    heartbeat_seconds: float = 300.0
    """The interval of status heartbeats without changes."""
    plugin_dir: str | None = None
    """Drivers register with nodes through sockets in this directory; None: they cannot."""
    unregistered_drivers: str = ""
    """HOLD or SIMULATE; empty: HOLD with a plugin directory."""
    slice_wipe_seconds: float = 30.0
    """How long a driver may be gone before its slices are deleted."""

    @property
    def simulates_unregistered(self) -> bool:
        """Whether drivers that have not registered, and whose hardware is not described, answer by themselves."""
        if self.unregistered_drivers:
            return self.unregistered_drivers == SIMULATE
        return self.plugin_dir is None

    @property
    def node_selector(self) -> str:
        return "" if self.all_nodes else f"{SIMULATED_LABEL}=true"
