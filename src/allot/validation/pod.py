"""The DRA parts of pods: claims and their use by containers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from allot.api.core import (
    Container,
    ContainerClaim,
    PodParts,
    PodResourceClaim,
    PodSpec,
)
from allot.api.meta import ObjectMeta
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
)
from allot.validation.internal_types import internal_value
from allot.validation.metadata import validate_metadata
from allot.validation.names import validate_label, validate_subdomain

SPEC: Final = FieldPath("spec")
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"


def validate_pod(pod: PodParts) -> Iterator[FieldError]:
    """A new pod."""
    yield from validate_metadata(pod.metadata, namespaced=True)
    yield from validate_pod_spec(pod.spec)
    yield from validate_static_pod(pod.metadata, pod.spec.resource_claims)


def validate_static_pod(
    metadata: ObjectMeta, claims: Sequence[object] | None
) -> Iterator[FieldError]:
    """Of a pod that a kubelet has found in a file."""
    if MIRROR_ANNOTATION in metadata.annotations and claims:
        yield forbidden(FieldPath("[]"), "static pods do not support resource claims")


def validate_pod_spec(spec: PodSpec, spec_path: FieldPath = SPEC) -> Iterator[FieldError]:
    """The claims of a pod or of a pod template."""
    claims_path = spec_path / "resourceClaims"
    names: set[str] = set()
    for index, claim in enumerate(spec.resource_claims):
        yield from _validate_claim(claim, names, claims_path @ index)
    unknown = unknown_claim(names)
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for index, container in enumerate(containers):
            path = spec_path / field @ index / "resources" / "claims"
            yield from _validate_container_claims(container.resources.claims, names, unknown, path)
    if spec.resources is not None and spec.resources.claims is not None:
        yield forbidden(
            spec_path / "resources" / "claims", "claims may not be set for Resources at pod-level"
        )
        path = spec_path / "resources" / "claims"
        yield from _validate_container_claims(spec.resources.claims, names, unknown, path)


def _validate_claim(
    claim: PodResourceClaim, names: set[str], path: FieldPath
) -> Iterator[FieldError]:
    """One entry of spec.resourceClaims; adds its name to `names`."""
    if not claim.name:
        yield required(path / "name")
    elif claim.name in names:
        yield duplicate(path / "name", claim.name)
    else:
        yield from validate_label(claim.name, path / "name")
        names.add(claim.name)
    name, template = claim.resource_claim_name, claim.resource_claim_template_name
    if name is not None and template is not None:
        yield invalid(
            path,
            _shown(claim),
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        )
    if name is None and template is None:
        yield invalid(
            path,
            _shown(claim),
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        )
    if name is not None:
        yield from validate_subdomain(name, path / "resourceClaimName")
    if template is not None:
        yield from validate_subdomain(template, path / "resourceClaimTemplateName")


def _shown(claim: PodResourceClaim) -> dict[str, Any]:
    return internal_value(msgspec.to_builtins(claim), "PodResourceClaim")


def _validate_container_claims(
    claims: tuple[ContainerClaim, ...], names: set[str], unknown: str, path: FieldPath
) -> Iterator[FieldError]:
    """A container uses a claim as a whole, or requests of it; not both, and none twice."""
    whole: set[str] = set()
    parts: set[str] = set()
    claims_in_parts: set[str] = set()
    for index, claim in enumerate(claims):
        claim_path = path @ index
        if not claim.name:
            yield required(claim_path)
            continue
        full_name = f"{claim.name}/{claim.request}"
        if claim.name in whole:
            yield duplicate(claim_path, claim.name)
        elif claim.request and full_name in parts:
            yield duplicate(claim_path, full_name)
        elif not claim.request and claim.name in claims_in_parts:
            yield duplicate(claim_path, claim.name)
        if claim.request:
            parts.add(full_name)
            claims_in_parts.update((claim.name, claim.name.partition("/")[0]))
            yield from validate_label(claim.request, claim_path / "request")
        else:
            whole.add(claim.name)
        if claim.name not in names:
            yield not_found(claim_path, claim.name, unknown)


def unknown_claim(names: Collection[str]) -> str:
    """What is wrong with a claim that a pod does not have. Made once: it may be as long as the pod."""
    listed = ": " + ", ".join(sorted(names)) if names else " which is empty"
    return f"must be one of the names in pod.spec.resourceClaims{listed}"


def all_containers(spec: PodSpec) -> tuple[Container, ...]:
    return (*spec.init_containers, *spec.containers)
