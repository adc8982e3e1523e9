"""Arguments of the public API: names, manifests as dictionaries or YAML, `pod/NAME`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.identities import ObjectKey
from allot.api.similar_names import did_you_mean, similar_names
from allot.client import resources
from allot.client.resources import RESOURCES, Resource
from allot.lint.manifests import Manifest, parse_manifests
from allot.public.errors import NotFoundError, TargetError
from allot.public.loading import DEFAULT_NAMESPACE, objects_in
from allot.public.manifest_files import readable

MAX_NAMES: Final = 5
TEXT: Final = "<text>"
ARGUMENT: Final = "<argument>"
_WORDS: Final = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "claim": "claim",
    "claims": "claim",
    "resourceclaim": "claim",
    "resourceclaims": "claim",
}


def manifests_of(sources: Iterable[Mapping[str, Any] | str]) -> Iterable[Manifest]:
    for source in sources:
        if isinstance(source, str):
            yield from readable(parse_manifests(TEXT, source.encode()))
        else:
            yield from readable(parse_manifests(ARGUMENT, msgspec.json.encode(source)))


def decoded_claim(manifest: Mapping[str, Any]) -> ResourceClaim | ResourceClaimTemplate:
    wanted: tuple[Resource[Any], ...] = (
        resources.RESOURCE_CLAIMS,
        resources.RESOURCE_CLAIM_TEMPLATES,
    )
    found = objects_in(manifests_of([manifest]), wanted)
    for resource in wanted:
        for obj in found.of(resource):
            claim: ResourceClaim | ResourceClaimTemplate = obj
            return claim
    kind = manifest.get("kind") or "object without a kind"
    raise TypeError(f"a ResourceClaim or ResourceClaimTemplate is needed, not {kind}")


def read_target(text: str) -> tuple[str, ObjectKey]:
    """The kind and the key in `pod/NAME`, `pod/NAMESPACE/NAME` and the like; `TargetError` if it is something else."""
    kind, _, name = text.partition("/")
    word = _WORDS.get(kind.lower())
    if word is None or not name:
        raise TargetError(text)
    return word, key_named(name)


def target_of(manifest: Mapping[str, Any]) -> tuple[str, ObjectKey]:
    word = _WORDS.get(str(manifest.get("kind") or "").lower())
    metadata = manifest.get("metadata") or {}
    if word is None or not metadata.get("name"):
        raise ValueError("expected the manifest of a Pod or a ResourceClaim, with a name")
    return word, ObjectKey(metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"])


def key_named(name: str) -> ObjectKey:
    namespace, _, rest = name.rpartition("/")
    return ObjectKey(namespace or DEFAULT_NAMESPACE, rest)


def resource_named(kind: str) -> Resource[Any]:
    for resource in RESOURCES:
        if kind.lower() in (resource.kind.lower(), resource.plural):
            return resource
    raise NotFoundError(
        f"no kind {kind}{did_you_mean(similar_names(kind, (each.kind for each in RESOURCES)))}"
    )


def not_found(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    names = sorted(known)
    close = did_you_mean(similar_names(name, names))
    if not close:
        shown = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        close = f"; available: {shown}" if names else f"; the snapshot has no {kind} at all"
    return NotFoundError(f"no {kind} {name} in this snapshot{close}")
