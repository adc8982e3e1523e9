"""Pods from watches. Pods of one template share their spec, as do the versions of a pod.

A spec is most of a pod, and is read once as long as it comes in the same bytes. What a watch shows of it only differs in
the node, which allot's server writes last.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from allot.api.core import FINISHED, Pod
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.client.codecs import (
    BROKEN,
    WITHOUT_OBJECT,
    RawCodec,
    WatchEvent,
    event_without_managed_fields,
    line_without_managed_fields,
)

MAX_SPECS: Final = 64
MAX_BYTES: Final = 4096
"""Larger specs are read every time."""
NOT_A_POD: Final = (KeyError, AttributeError, TypeError)
"""Raised where an object is not what pods are."""
_NODE: Final = b',"nodeName":"'
_new_tuple: Final = tuple.__new__  # that of named tuples is written in Python
_is_name: Final = re.compile(rb"[a-z0-9.-]+").fullmatch


class _PodParts(Struct, rename="camel", forbid_unknown_fields=True):
    """A pod that has all parts of one, and nothing else."""

    kind: str
    api_version: str
    metadata: dict[str, Any]
    spec: Raw
    status: dict[str, Any]


class _PodEvent(Struct):
    type: str
    object: _PodParts


_decode_event: Final = msgspec.json.Decoder(_PodEvent).decode
_decode_spec: Final = msgspec.json.Decoder(dict[str, Any]).decode


class PodCodec(RawCodec[Pod]):
    """Objects of the resource pods. Unusual events are left to the general codec."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        super().__init__(Pod, gvk)
        self._known: dict[bytes, Pod] = {}
        """Pods that have nothing but a spec without a node, by its JSON. When there are too many, all are forgotten."""

    def in_version(self, gvk: GroupVersionKind) -> PodCodec:
        return PodCodec(gvk)

    def decode_event(self, line: bytes) -> WatchEvent[Pod]:
        try:
            event = _decode_event(line)
            parts = event.object
            metadata, spec = parts.metadata, bytes(parts.spec)
            version = metadata["resourceVersion"]
            if event.type in WITHOUT_OBJECT or len(spec) > MAX_BYTES:
                return super().decode_event(line)
            unbound, node = _split(spec)
            similar = self._known.get(unbound)
            if similar is None:
                similar = self._read(unbound)
        except (*BROKEN, *NOT_A_POD):
            return super().decode_event(line)
        shown, status = similar.rest["spec"], parts.status
        pod = Pod(
            {
                "kind": parts.kind,
                "apiVersion": parts.api_version,
                "metadata": metadata,
                "spec": {**shown, "nodeName": node} if node else shown,
                "status": status,
            }
        )
        # What event handlers ask of every pod.
        pod.key = _new_tuple(
            ObjectKey, (metadata.get("namespace") or "", metadata.get("name") or "")
        )
        pod.claim_entries = similar.claim_entries
        pod.volumes = similar.volumes
        pod.node_name = node or similar.node_name
        phase = status.get("phase") or ""
        if phase.__class__ is str:
            pod.phase = phase
        pod.is_finished = phase in FINISHED
        if "extendedResourceClaimStatus" not in status:
            pod.extended_claim = ""
        return WatchEvent(event.type, pod, version)

    def decode_bare_event(self, line: bytes) -> WatchEvent[Pod]:
        bare = line_without_managed_fields(line)
        event = self.decode_event(bare)
        return event if bare is not line else event_without_managed_fields(event)

    def _read(self, spec: bytes) -> Pod:
        """A pod with this spec, which is known from now on. What it is asked for here is shared by all that have it."""
        read = Pod({"spec": _decode_spec(spec)})
        _ = read.claim_entries, read.volumes, read.node_name
        if len(self._known) >= MAX_SPECS:
            self._known.clear()
        self._known[spec] = read
        return read


def _split(spec: bytes) -> tuple[bytes, str]:
    """The spec without its node, and the node, if that is the last field; else the whole spec, and no node.

    The name of the node is followed by the end of an object and of the spec, which are therefore the same.
    """
    start = spec.rfind(_NODE)
    if start < 0 or not spec.endswith(b'"}'):
        return spec, ""
    name = _is_name(spec, start + len(_NODE), len(spec) - 2)
    return (spec, "") if name is None else (spec[:start] + b"}", name[0].decode())
