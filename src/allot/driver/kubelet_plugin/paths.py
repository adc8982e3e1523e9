"""Where the files of a driver are on a node."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final, NamedTuple

MAX_SOCKET_PATH: Final = 107
"""Bytes of a unix socket's path on Linux, without the final NUL."""
KUBELET_DIRECTORY: Final = Path("/var/lib/kubelet")
CDI_DIRECTORY: Final = Path("/var/run/cdi")


class SocketPathError(ValueError):
    """A socket's path is too long for the operating system."""


class PluginPaths(NamedTuple):
    """The files of one instance of a driver."""

    directory: Path
    """The driver's own, for its socket and state."""
    endpoint: Path
    registration: Path
    cdi: Path


def plugin_paths(
    driver: str,
    kubelet_directory: Path = KUBELET_DIRECTORY,
    cdi_directory: Path = CDI_DIRECTORY,
    instance: str = "",
    *,
    directory: Path | None = None,
    registry: Path | None = None,
) -> PluginPaths:
    """The paths below the kubelet's directory. `instance` is the UID of the driver's pod, for rolling updates.

    Raises `SocketPathError`.
    """
    directory = (directory or kubelet_directory / "plugins" / driver).absolute()
    registry = (registry or kubelet_directory / "plugins_registry").absolute()
    endpoint = directory / (f"dra-{instance}.sock" if instance else "dra.sock")
    if instance and len(str(endpoint).encode()) > MAX_SOCKET_PATH:
        endpoint = directory / f"dra-{_digest(instance, 8)}.sock"
    paths = PluginPaths(
        directory,
        endpoint,
        registry / _registration_name(driver, instance, registry),
        cdi_directory,
    )
    for path in (paths.endpoint, paths.registration):
        if len(str(path).encode()) > MAX_SOCKET_PATH:
            raise SocketPathError(
                f"the path of the socket {path} is longer than {MAX_SOCKET_PATH} bytes; use shorter directories"
            )
    return paths


def _registration_name(driver: str, instance: str, registry: Path) -> str:
    """The first name that fits, as Kubernetes' helper chooses it."""
    if not instance:
        return f"{driver}-reg.sock"
    names = (
        f"{driver}-{instance}-reg.sock",
        f"{driver}-{_digest(instance, 8)}-reg.sock",
        f"dra-{_digest(driver + chr(0) + instance, 16)}-reg.sock",
    )
    for name in names:
        if len(str(registry / name).encode()) <= MAX_SOCKET_PATH:
            return name
    return names[-1]


def _digest(text: str, size: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
