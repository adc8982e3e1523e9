"""The directories of a simulated node: what `/var/lib/kubelet` and `/var/run/cdi` are on a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

MAX_SOCKET_PATH: Final = 107
"""Bytes of a unix socket's path on Linux, without the final NUL."""


class NodePaths(NamedTuple):
    """The paths of one node, below the plugin directory."""

    root: Path

    @property
    def registry(self) -> Path:
        """Drivers put their registration sockets here."""
        return self.root / "plugins_registry"

    @property
    def plugins(self) -> Path:
        """Drivers keep their DRA sockets and state here, each in a directory of its own."""
        return self.root / "plugins"

    @property
    def cdi(self) -> Path:
        """Drivers write CDI specifications here."""
        return self.root / "cdi"

    @property
    def checkpoint(self) -> Path:
        return self.root / "dra_manager_state"

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources API."""
        return self.root / "pod-resources" / "kubelet.sock"

    def create(self) -> None:
        for directory in (self.registry, self.plugins, self.cdi, self.pod_resources.parent):
            directory.mkdir(parents=True, exist_ok=True)


def node_paths(plugin_directory: Path, node: str) -> NodePaths:
    return NodePaths(plugin_directory.absolute() / node)
