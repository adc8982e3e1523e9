"""Container Device Interface: the specifications that drivers write, and what they add to a container.

A device is named VENDOR/CLASS=NAME. Files are JSON or YAML; what several of them define is ambiguous, and so unusable, as
for container runtimes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

SUFFIXES: Final = (".json", ".yaml", ".yml")
_VENDOR: Final = r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_CLASS: Final = r"[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?"
_NAME: Final = r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?"
QUALIFIED_NAME: Final = re.compile(f"{_VENDOR}/{_CLASS}={_NAME}")
_KIND: Final = re.compile(f"{_VENDOR}/{_CLASS}")


class CdiError(Exception):
    """Devices that a container cannot get, in the words of container runtimes."""


class ContainerEdits(NamedTuple):
    """What is added to a container."""

    env: tuple[str, ...] = ()
    """NAME=VALUE."""
    mounts: tuple[str, ...] = ()
    """HOST:CONTAINER."""
    device_nodes: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()

    def __add__(self, other: ContainerEdits) -> ContainerEdits:  # type: ignore[override]
        return ContainerEdits(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class CdiSpec(NamedTuple):
    """One file."""

    kind: str
    edits: ContainerEdits
    """For every container that gets one of the devices."""
    devices: Mapping[str, ContainerEdits]


def read_spec(content: bytes, *, is_json: bool) -> CdiSpec:
    """Raises `CdiError`."""
    try:
        document = json.loads(content) if is_json else yaml.safe_load(content)
        kind = document["kind"]
        if not document.get("cdiVersion") or not _KIND.fullmatch(kind):
            raise CdiError("`cdiVersion` and a `kind` of the form VENDOR/CLASS are required")
        devices = {
            device["name"]: _edits(device.get("containerEdits")) for device in document["devices"]
        }
        return CdiSpec(kind, _edits(document.get("containerEdits")), devices)
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise CdiError(f"not a CDI specification: {error}") from error


def _edits(document: Any) -> ContainerEdits:
    document = document or {}
    return ContainerEdits(
        tuple(map(str, document.get("env") or ())),
        tuple(
            f"{mount['hostPath']}:{mount['containerPath']}"
            for mount in document.get("mounts") or ()
        ),
        tuple(node["path"] for node in document.get("deviceNodes") or ()),
        tuple(f"{hook['hookName']}:{hook['path']}" for hook in document.get("hooks") or ()),
    )


class _File(NamedTuple):
    changed_ns: int
    size: int
    spec: CdiSpec | str
    """The problem of an unusable file."""


class CdiSpecs:
    """The specifications in a directory. Files are read again when they have changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, _File] = {}

    def edits(self, device_ids: Iterable[str]) -> ContainerEdits:
        """What a container gets with these devices. Raises `CdiError`."""
        wanted = list(dict.fromkeys(device_ids))
        if not wanted:
            return ContainerEdits()
        self._read()
        total = ContainerEdits()
        unresolved = []
        used: set[str] = set()
        for device_id in wanted:
            found = list(self._find(device_id))
            if len(found) != 1:
                unresolved.append(device_id)
                continue
            name, spec, edits = found[0]
            if name not in used:
                used.add(name)
                total += spec.edits
            total += edits
        if unresolved:
            raise CdiError(
                "CDI device injection failed: unresolvable CDI devices "
                f"{', '.join(unresolved)}{self._problems()}"
            )
        return total

    def _find(self, device_id: str) -> Iterator[tuple[str, CdiSpec, ContainerEdits]]:
        if QUALIFIED_NAME.fullmatch(device_id) is None:
            return
        kind, _, device = device_id.partition("=")
        for name, file in self._files.items():
            spec = file.spec
            if isinstance(spec, CdiSpec) and spec.kind == kind and device in spec.devices:
                yield name, spec, spec.devices[device]

    def _problems(self) -> str:
        broken = [
            f"{name}: {file.spec}"
            for name, file in sorted(self._files.items())
            if isinstance(file.spec, str)
        ]
        return f" ({'; '.join(broken)})" if broken else ""

    def _read(self) -> None:
        files = {}
        try:
            entries = sorted(os.scandir(self._directory), key=lambda entry: entry.name)
        except OSError:
            entries = []
        for entry in entries:
            if not entry.name.endswith(SUFFIXES) or entry.name.startswith("."):
                continue
            try:
                status = entry.stat()
                known = self._files.get(entry.name)
                if known is None or known[:2] != (status.st_mtime_ns, status.st_size):
                    spec = _read_file(Path(entry.path))
                    known = _File(status.st_mtime_ns, status.st_size, spec)
            except OSError:
                continue  # removed meanwhile
            files[entry.name] = known
        self._files = files


def _read_file(path: Path) -> CdiSpec | str:
    try:
        return read_spec(path.read_bytes(), is_json=path.suffix == ".json")
    except CdiError as error:
        return str(error)
