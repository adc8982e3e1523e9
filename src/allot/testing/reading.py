"""What tests pass and ask for: manifests in any form, claims of a pod, devices of a claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allot.api.identities import DeviceId
from allot.lint.manifests import parse_manifests
from allot.public.errors import ManifestError
from allot.public.manifest_files import readable


def documents_of(
    manifest: str | Path | Mapping[str, Any], directory: Path | None = None
) -> Iterator[Mapping[str, Any]]:
    """The objects of a YAML string, a file or a dictionary; `ManifestError` if they cannot be read, with the line."""
    if isinstance(manifest, Mapping):
        yield manifest
        return
    source, content = "<string>", b""
    if isinstance(manifest, Path):
        path = manifest
        if directory is not None and (directory / manifest).exists():
            path = directory / manifest
        source, content = str(path), _content(path)
    else:
        content = manifest.encode()
    if content.lstrip().startswith(b"{"):
        content = b"--- " + content.lstrip()  # YAML, of which JSON is a part
    for found in readable(parse_manifests(source, content)):
        for field, place in found.duplicates:
            raise ManifestError(source, f"duplicate field {field}", place.line)
        yield found.data


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ManifestError(str(path), error.strerror or str(error)) from error


def claims_of_pod(pod: Mapping[str, Any]) -> list[str]:
    """The names of a pod's claims that exist, those for extended resources included."""
    status = pod.get("status") or {}
    generated = {
        each["name"]: each.get("resourceClaimName")
        for each in status.get("resourceClaimStatuses") or ()
    }
    named = [
        each.get("resourceClaimName") or generated.get(each["name"])
        for each in pod["spec"].get("resourceClaims") or ()
    ]
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return [name for name in (*named, extended) if name]


def devices_of_claim(claim: Mapping[str, Any]) -> list[DeviceId]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [DeviceId(each["driver"], each["pool"], each["device"]) for each in results]
