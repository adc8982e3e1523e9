"""Pods. What the server fills in, drops and lets an update change is in `pod_strategy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.apiserver.defaults.pods import pod_defaults
from allot.apiserver.kinds import pod_parts, pod_strategy
from allot.apiserver.kinds.definition import (
    BINDING,
    CONNECTIONS,
    EPHEMERAL_CONTAINERS,
    EVICTION,
    LOG,
    POD_PROXY,
    RESIZE,
    STATUS,
    KindDefinition,
)
from allot.apiserver.kinds.pod_specs import POD_SPECS
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.known_results import KnownResults
from allot.apiserver.printers.pods import PODS
from allot.validation.containers import validate_images
from allot.validation.fields import FieldError, FieldPath, forbidden
from allot.validation.metadata import validate_metadata_update
from allot.validation.parts import Part
from allot.validation.pod import validate_pod
from allot.validation.pod_annotations import validate_pod_annotations
from allot.validation.pod_basics import validate_pod_basics
from allot.validation.pod_warnings import IN_HOST_NAME, pod_warnings


class PodStrategy(RawStrategy):
    """Pods: the DRA parts are checked in full, the plain parts for what is most often wrong."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return pod_strategy.prepare_create(_pod(new), request)

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        pod = _pod(new)
        spec = pod.rest.get("spec") or {}
        facts = POD_SPECS.facts(spec)
        yield from pod_strategy.validate_before_spec(pod, facts)
        if "basics" not in facts.valid:
            yield from _validate_basics(pod)
        yield from pod_strategy.validate_after_spec(pod, spec)

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        for field in ("priority", "preemptionPolicy"):  # found on create, not again
            if new.get("spec", field) is None and old.get("spec", field) is not None:
                new = new.with_value(old.get("spec", field), "spec", field)
        return pod_strategy.prepare_update(_pod(new), _pod(old), request)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from validate_pod_annotations(new.metadata.annotations, new.get("spec", default={}))
        yield from _validate_basics(new)
        yield from pod_strategy.validate_update(_pod(new), _pod(old), request)

    def update_warnings(self, new: RawObject) -> list[str]:
        """None: controllers update pods often, and people rarely do."""
        return []

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        """Also of the other parts that have a subresource."""
        match request.subresource:
            case EPHEMERAL_CONTAINERS.name:
                return pod_parts.with_ephemeral_containers(_pod(new), _pod(old))
            case RESIZE.name:
                return pod_parts.with_resources(_pod(new), _pod(old))
        return pod_strategy.prepare_status_update(new, old, request)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        part = request.subresource
        if part not in (EPHEMERAL_CONTAINERS.name, RESIZE.name):
            yield from pod_strategy.validate_status_update(new, old, request)
            return
        refused = pod_parts.refused_part(_pod(old), part)
        if refused is not None:
            yield refused
            return
        yield from validate_metadata_update(new.metadata, old.metadata)
        yield from validate_pod(pod_strategy.parts_of(_pod(new)))
        yield from _validate_basics(new)
        rule = (
            pod_parts.validate_resize
            if part == RESIZE.name
            else pod_parts.validate_ephemeral_containers
        )
        yield from rule(_pod(new), _pod(old))


def _pod(obj: RawObject) -> Pod:
    return obj if obj.__class__ is Pod else Pod(obj.data)


HAS_GATES: Final = "cannot be set until all schedulingGates have been cleared"


def _validate_basics(new: RawObject) -> Iterable[FieldError]:
    spec = new.rest.get("spec") or {}
    facts = POD_SPECS.facts(spec)
    if "basics" in facts.valid:
        return ()
    return facts.errors("basics", lambda: _spec_errors(spec, FieldPath("spec")))


def _spec_errors(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from validate_pod_basics(spec, path)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden(path / "nodeName", HAS_GATES)
    yield from validate_images(spec, path)


_known_warnings: Final = KnownResults[list[str]]()


def _warnings(pod: RawObject) -> list[str]:
    """They depend on the names of annotations and on the spec."""
    if pod.metadata.annotations:
        parts = (*pod.metadata.annotations, pod.get("spec"))
        return _known_warnings.get(parts, lambda: pod_warnings(pod))
    facts = POD_SPECS.facts(pod.rest.get("spec") or {})
    if facts.warnings is None:
        facts.warnings = pod_warnings(pod)
    return facts.warnings


_SELECTABLE: Final = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip


DEFINITION: Final = KindDefinition(
    strategy=partial(
        PodStrategy,
        KindRules(status={}, generation=COUNTED, warnings=_warnings, name_is_used_in=IN_HOST_NAME),
    ),
    defaults=pod_defaults,
    table=PODS,
    plain_tables=("ephemeralcontainers",),
    subresources=(
        *CONNECTIONS,
        BINDING,
        EPHEMERAL_CONTAINERS,
        EVICTION,
        LOG,
        POD_PROXY,
        RESIZE,
        STATUS,
    ),
    selectable_fields={path: path for path in _SELECTABLE},
    returns_deleted_in=("v1",),
)
