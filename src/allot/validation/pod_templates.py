"""Pod templates: of workloads, of jobs, and those that are objects of their own.

As in Kubernetes, the paths of their labels and annotations do not mention the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from allot.api.core import PodSpec
from allot.api.decoding import from_value
from allot.validation.fields import FieldError, FieldPath, forbidden, not_supported
from allot.validation.metadata import validate_annotations, validate_labels
from allot.validation.parts import Part, as_part, part, parts
from allot.validation.pod import validate_pod_spec
from allot.validation.pod_annotations import validate_pod_annotations
from allot.validation.pod_basics import validate_pod_basics
from allot.validation.profile_annotations import validate_profile_annotations

NO_EPHEMERAL: Final = "ephemeral containers not allowed in pod template"


def validate_template(template: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    metadata, spec = part(template, "metadata"), part(template, "spec")
    annotations = as_part(metadata.get("annotations"))
    yield from validate_labels(as_part(metadata.get("labels")), path / "labels")
    yield from validate_annotations(annotations, path / "annotations")
    yield from validate_pod_annotations(annotations, spec, path / "annotations")
    if _has_claims(spec):
        typed = msgspec.convert(spec, PodSpec, dec_hook=from_value)
        yield from validate_pod_spec(typed, path / "spec")
    yield from validate_pod_basics(spec, path / "spec")
    yield from validate_profile_annotations(annotations, spec, path / "spec")
    if spec.get("ephemeralContainers"):
        yield forbidden(path / "spec" / "ephemeralContainers", NO_EPHEMERAL)


def validate_lasting_template(
    template: Mapping[str, Any], path: FieldPath, owner: str
) -> Iterator[FieldError]:
    """Of pods that do not end. `owner` is the kind that creates them."""
    yield from validate_template(template, path)
    spec = part(template, "spec")
    policy = spec.get("restartPolicy")
    if policy is not None and policy != "Always":
        yield not_supported(path / "spec" / "restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        rule = f"activeDeadlineSeconds in {owner} is not Supported"
        yield forbidden(path / "spec" / "activeDeadlineSeconds", rule)


def _has_claims(spec: Part) -> bool:
    if spec.get("resourceClaims") or part(spec, "resources").get("claims") is not None:
        return True
    containers = (each for field in ("containers", "initContainers") for each in parts(spec, field))
    return any(as_part(container.get("resources")).get("claims") for container in containers)
