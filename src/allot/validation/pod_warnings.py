"""Warnings about pods and pod templates that are accepted: deprecated fields, and values that hide others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.fields import FieldPath
from allot.validation.formats import label_problems
from allot.validation.parts import Part, part, parts
from allot.validation.profile_annotations import APP_ARMOR, SECCOMP, SECCOMP_OF_POD
from allot.validation.volume_paths import overlap_warnings

MAX_DUPLICATE_PORTS: Final = 100
"""Further ones are left out, as answers have fewer warnings."""


class _Replaced(NamedTuple):
    """A label with a newer name."""

    since: str
    name: str


DEPRECATED_LABELS: Final = {
    "beta.kubernetes.io/arch": _Replaced("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": _Replaced("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": _Replaced("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": _Replaced("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": _Replaced("v1.17", "node.kubernetes.io/instance-type"),
}
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BYTES: Final = ("memory", "ephemeral-storage")

IN_POD_NAMES: Final = "Pod names and hostnames"
IN_HOST_NAME: Final = "the Pod's hostname"


def label_name_warning(name: str, used_in: str) -> str:
    """About the name of a new object that is no DNS label."""
    return (
        f"metadata.name: this is used in {used_in}, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(label_problems(name))}]"
    )


def pod_warnings(pod: RawObject) -> list[str]:
    """About a new pod. Those about AppArmor annotations come when its fields are set from them."""
    annotations = {
        name: value
        for name, value in pod.metadata.annotations.items()
        if not name.startswith(APP_ARMOR)
    }
    spec = pod.get("spec", default={})
    return list(_warnings(annotations, spec, FieldPath("metadata"), FieldPath("spec")))


def app_armor_warning(name: str) -> str:
    """About the annotation of a pod from which the profile of a container was set, or should have been."""
    return f"{FieldPath('metadata') / 'annotations' @ name}: {_APP_ARMOR}"


def template_warnings(owner: RawObject, path: Sequence[str] = ("spec", "template")) -> list[str]:
    """About the pod template at a path of another object."""
    template: Mapping[str, Any] = owner.get(*path, default={})
    place = FieldPath(path[0])
    for name in path[1:]:
        place = place / name
    annotations = part(part(template, "metadata"), "annotations")
    spec = part(template, "spec")
    return list(_warnings(annotations, spec, place / "metadata", place / "spec"))


def _warnings(
    annotations: Mapping[str, Any], spec: Part, metadata_path: FieldPath, path: FieldPath
) -> Iterator[str]:
    for name in sorted(part(spec, "nodeSelector")):
        yield from label_warnings(name, path / "nodeSelector" @ name, is_key=True)
    yield from _node_affinity(part(part(spec, "affinity"), "nodeAffinity"), path / "affinity")
    for index, constraint in enumerate(parts(spec, "topologySpreadConstraints")):
        place = path / "topologySpreadConstraints" @ index
        yield from label_warnings(constraint.get("topologyKey") or "", place / "topologyKey")
        if constraint.get("labelSelector") is None:
            yield f"{place / 'labelSelector'}: {NULL_SELECTOR}"
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path / 'terminationGracePeriodSeconds'}: {rule}"
    annotations_path = metadata_path / "annotations"
    for name, note in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{annotations_path @ name}: {note}"
    yield from _volumes(spec, path)
    yield from _host_aliases(spec, path)
    yield from _pull_secrets(spec, path)
    yield from _amounts(part(spec, "overhead"), path / "overhead")
    whole = part(spec, "securityContext")
    if SECCOMP_OF_POD in annotations and whole.get("seccompProfile") is None:
        yield f"{annotations_path @ SECCOMP_OF_POD}: {_SECCOMP}"
    for field in ("initContainers", "containers"):
        for index, container in enumerate(parts(spec, field)):
            for name, note in _profiles(container, whole):
                if name in annotations:
                    yield f"{annotations_path @ name}: {note}"
            yield from _container(container, path / field @ index)
            yield from _host_addresses(container, path / field @ index)
    for field in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(part(part(spec, "affinity"), field), path / "affinity" / field)
    yield from _ports(spec, path)


def label_warnings(name: str, path: FieldPath, *, is_key: bool = False) -> Iterator[str]:
    """About a label by which nodes are selected; `is_key`: the path names it."""
    found = DEPRECATED_LABELS.get(name)
    if found is not None:
        subject = "" if is_key else f"{name} is "
        yield f'{path}: {subject}deprecated since {found.since}; use "{found.name}" instead'


def _node_affinity(affinity: Part, path: FieldPath) -> Iterator[str]:
    path = path / "nodeAffinity"
    required = part(affinity, _REQUIRED)
    for index, term in enumerate(parts(required, "nodeSelectorTerms")):
        yield from _expressions(term, path / _REQUIRED / "nodeSelectorTerms" @ index)
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        term = part(preferred, "preference")
        yield from _expressions(term, path / _PREFERRED @ index / "preference")


def _expressions(term: Part, path: FieldPath) -> Iterator[str]:
    for index, expression in enumerate(parts(term, "matchExpressions")):
        place = path / "matchExpressions" @ index / "key"
        yield from label_warnings(expression.get("key") or "", place)


def _pod_affinity(affinity: Part, path: FieldPath) -> Iterator[str]:
    for index, term in enumerate(parts(affinity, _REQUIRED)):
        if term.get("labelSelector") is None:
            yield f"{path / _REQUIRED @ index / 'labelSelector'}: {NULL_SELECTOR}"
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        if part(preferred, "podAffinityTerm").get("labelSelector") is None:
            place = path / _PREFERRED @ index / "podAffinityTerm" / "labelSelector"
            yield f"{place}: {NULL_SELECTOR}"


def _host_aliases(spec: Part, path: FieldPath) -> Iterator[str]:
    seen: set[str] = set()
    for index, alias in enumerate(parts(spec, "hostAliases")):
        address = alias.get("ip") or ""
        if address in seen:
            yield f'{path / "hostAliases" @ index / "ip"}: duplicate ip "{address}"'
        seen.add(address)


def _pull_secrets(spec: Part, path: FieldPath) -> Iterator[str]:
    names = [secret.get("name") or "" for secret in parts(spec, "imagePullSecrets")]
    places = [path / "imagePullSecrets" @ index / "name" for index in range(len(names))]
    seen: set[str] = set()
    for name, place in zip(names, places, strict=True):
        if name in seen:
            yield f'{place}: duplicate name "{name}"'
        seen.add(name)
    for name, place in zip(names, places, strict=True):
        if not name:
            yield f'{place}: invalid empty name ""'


def _volumes(spec: Part, path: FieldPath) -> Iterator[str]:
    for index, volume in enumerate(parts(spec, "volumes")):
        place = path / "volumes" @ index
        for name, note in _VOLUMES.items():
            if volume.get(name) is not None:
                shown = "storageOS" if name == "storageos" else name
                yield f"{place / shown}: {note}"
        yield from overlap_warnings(volume)
        claim = part(part(volume, "ephemeral"), "volumeClaimTemplate")
        where = place / "ephemeral" / "volumeClaimTemplate" / "spec"
        yield from claim_warnings(part(claim, "spec"), where)


def claim_warnings(spec: Part, path: FieldPath) -> Iterator[str]:
    """About the spec of a PersistentVolumeClaim."""
    amount = part(part(spec, "resources"), "requests").get("storage")
    yield from amount_warnings("storage", amount, path / "resources" / "requests")


# --- containers ---


def _profiles(container: Part, whole: Part) -> Iterator[tuple[str, str]]:
    """The annotations that stand for fields which are not set, and what to say about them."""
    own, name = part(container, "securityContext"), container.get("name")
    if own.get("seccompProfile") is None:
        yield f"{SECCOMP}{name}", _SECCOMP
    if own.get("appArmorProfile") is None and whole.get("appArmorProfile") is None:
        yield f"{APP_ARMOR}{name}", _APP_ARMOR


def _container(container: Part, path: FieldPath) -> Iterator[str]:
    resources = part(container, "resources")
    for name in _BYTES:
        for kind in ("limits", "requests"):
            amount = part(resources, kind).get(name)
            yield from amount_warnings(name, amount, path / "resources" / kind)
    first: dict[str, Mapping[str, Any]] = {}
    for index, variable in enumerate(parts(container, "env")):
        name = variable.get("name") or ""
        refers_to_itself = f"$({name})" in (variable.get("value") or "")
        if name in first and not refers_to_itself:
            yield (
                f'{path / "env" @ index}: hides previous definition of "{name}",'
                " which may be dropped when using apply"
            )
        first.setdefault(name, variable)


def _host_addresses(container: Part, path: FieldPath) -> Iterator[str]:
    for index, port in enumerate(parts(container, "ports")):
        if port.get("hostIP") and not port.get("hostPort"):
            shown = (
                f"{{Name:{port.get('name') or ''} HostPort:0 ContainerPort:{port.get('containerPort') or 0}"
                f" Protocol:{port.get('protocol') or ''} HostIP:{port['hostIP']}}}"
            )
            yield f"{path / 'ports' @ index}: hostIP set without hostPort: {shown}"


def _amounts(amounts: Part, path: FieldPath) -> Iterator[str]:
    for name in _BYTES:
        yield from amount_warnings(name, amounts.get(name), path)


def amount_warnings(name: str, amount: Any, path: FieldPath) -> Iterator[str]:
    """About an amount of bytes."""
    if amount is None:
        return
    try:
        quantity = quantity_from_json(repr(amount) if isinstance(amount, float) else amount)
    except QuantityError:
        return
    if not quantity.is_whole():
        yield f'{path @ name}: fractional byte value "{quantity}" is invalid, must be an integer'


def _ports(spec: Part, path: FieldPath) -> Iterator[str]:
    """Ports that are declared more than once. Those on the host are validated."""
    return islice(_duplicate_ports(spec, path), MAX_DUPLICATE_PORTS)


def _duplicate_ports(spec: Part, path: FieldPath) -> Iterator[str]:
    """One for each pair, so that their number grows with the square of the number of ports."""
    seen: dict[tuple[Any, ...], list[FieldPath]] = {}
    for field in ("initContainers", "containers"):
        for number, container in enumerate(parts(spec, field)):
            for index, port in enumerate(parts(container, "ports")):
                place = path / field @ number / "ports" @ index
                key = tuple(
                    port.get(name) for name in ("containerPort", "protocol", "hostPort", "hostIP")
                )
                for earlier in seen.setdefault(key, []):
                    yield f"{place}: duplicate port definition with {earlier}"
                seen[key].append(place)
