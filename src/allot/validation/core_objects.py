"""Core kinds with few rules: quotas, leases, priority classes, services, volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.container_resources import NOT_NEGATIVE, validate_container_resources
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import caseless_subdomain_problems, subdomain_problems
from allot.validation.ip_addresses import (
    NOT_AN_ADDRESS,
    address_name_problems,
    parse_address,
)
from allot.validation.metadata import IMMUTABLE
from allot.validation.names import validate_label, validate_label_key, validate_label_value
from allot.validation.parts import parts
from allot.validation.pod_basics import PORT_RANGE

SPEC: Final = FieldPath("spec")
STATUS: Final = FieldPath("status")
NAME: Final = FieldPath("metadata") / "name"

Update = Callable[[RawObject, RawObject], Iterator[FieldError]]


def unchanged(*path: str) -> Update:
    """A rule for updates: the value at this path stays as it was."""
    field = FieldPath(path[0])
    for name in path[1:]:
        field = field / name

    def validate(new: RawObject, old: RawObject) -> Iterator[FieldError]:
        if new.get(*path) != old.get(*path):
            yield invalid(field, new.get(*path), IMMUTABLE)

    return validate


# --- namespaces and nodes ---


def validate_namespace_phase(namespace: RawObject) -> Iterator[FieldError]:
    """A namespace is terminating exactly while it is being deleted."""
    phase, path = namespace.get("status", "phase", default=""), STATUS / "Phase"
    if namespace.metadata.deletion_timestamp is None:
        if phase != "Active":
            yield invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        yield invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_node(node: RawObject) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(parts(node.get("spec", default={}), "taints")):
        path = SPEC / "taints" @ index
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        yield from validate_label_key(key, path / "key")
        if not effect:
            yield required(path / "effect")
        elif effect not in TAINT_EFFECTS:
            yield not_supported(path / "effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            yield duplicate(path, taint)
        seen.add((key, effect))


# --- quotas ---


QUOTA_SCOPES: Final = frozenset(
    (
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    )
)
_EXCLUSIVE_SCOPES: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_POD_AMOUNTS: Final = frozenset(
    ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
)


def _validate_quota_scopes(scopes: list[str], hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "scopes"
    for scope in scopes:
        if scope not in QUOTA_SCOPES:
            yield invalid(path, scopes, "unsupported scope")
            continue
        if scope == "VolumeAttributesClass":
            continue
        counted = {"pods"} if scope == "BestEffort" else {"pods", *_POD_AMOUNTS}
        if any(name not in counted for name in hard if name in _COUNTED or name in _POD_AMOUNTS):
            yield invalid(path, scopes, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _EXCLUSIVE_SCOPES):
        yield invalid(path, scopes, "conflicting scopes")


def validate_quota(quota: RawObject) -> Iterator[FieldError]:
    hard = quota.get("spec", "hard", default={})
    yield from _validate_quota_amounts(hard)
    yield from _validate_quota_scopes(quota.get("spec", "scopes", default=[]), hard)


def _validate_quota_amounts(hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "hard"
    for name, amount in hard.items():
        yield from validate_label_key(name, path @ name)
        try:
            quantity = quantity_from_json(amount)
        except QuantityError as error:
            yield invalid(path @ name, amount, str(error))
            continue
        if quantity.sign < 0:
            yield invalid(path @ name, str(amount), NOT_NEGATIVE)
        if _is_counted(name) and quantity.milli_value() % 1000:  # which overflows, as in Kubernetes
            yield invalid(path @ name, str(amount), "must be an integer")


_COUNTED: Final = frozenset(
    (
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    )
)


def _is_counted(name: str) -> bool:
    """Whether a quota entry counts objects, which are whole numbers."""
    is_extended = "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
    return name in _COUNTED or is_extended


# --- coordination, scheduling, node ---


def validate_lease(lease: RawObject) -> Iterator[FieldError]:
    seconds = lease.get("spec", "leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield invalid(SPEC / "leaseDurationSeconds", seconds, "must be greater than 0")
    transitions = lease.get("spec", "leaseTransitions")
    if isinstance(transitions, int) and transitions < 0:
        yield invalid(SPEC / "leaseTransitions", transitions, NOT_NEGATIVE)


MAX_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")


def validate_priority_class(priority_class: RawObject) -> Iterator[FieldError]:
    name, value = priority_class.metadata.name, priority_class.get("value", default=0)
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value:
            yield forbidden(
                NAME,
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use "
                f"only. error: {name} is not a known system priority class",
            )
    elif value > MAX_USER_PRIORITY:
        yield forbidden(
            FieldPath("value"),
            f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}",
        )
    policy = priority_class.get("preemptionPolicy", default="PreemptLowerPriority")
    if policy not in PREEMPTION_POLICIES:
        path = FieldPath("preemptionPolicy")
        yield not_supported(path, policy, PREEMPTION_POLICIES, is_ordered=True)


def validate_priority_class_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    if new.get("value", default=0) != old.get("value", default=0):
        yield forbidden(FieldPath("value"), "may not be changed in an update.")
    yield from unchanged("preemptionPolicy")(new, old)


def validate_runtime_class(runtime_class: RawObject) -> Iterator[FieldError]:
    handler = runtime_class.get("handler", default="")
    if not handler:
        yield required(FieldPath("handler"))
    else:
        yield from validate_label(handler, FieldPath("handler"))
    overhead = _mapping(runtime_class.get("overhead", "podFixed"))
    yield from validate_container_resources({"limits": overhead}, FieldPath("overhead"))
    scheduling = FieldPath("scheduling")
    for key, value in _mapping(runtime_class.get("scheduling", "nodeSelector")).items():
        yield from validate_label_key(key, scheduling / "nodeSelector")
        yield from validate_label_value(value, scheduling / "nodeSelector")
    tolerations = runtime_class.get("scheduling", "tolerations", default=[])
    for index, toleration in enumerate(tolerations):
        yield from _validate_toleration(toleration, scheduling / "tolerations" @ index)
        if toleration in tolerations[:index]:
            yield duplicate(scheduling / "tolerations" @ index, toleration)


def _validate_toleration(toleration: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key:
        yield from validate_label_key(key, path / "key")
    if operator == "Exists":
        if value := toleration.get("value"):
            yield invalid(
                path / "operator", value, "value must be empty when `operator` is 'Exists'"
            )
    elif operator == "Equal":
        yield from validate_label_value(toleration.get("value") or "", path / "operator")
    else:
        yield not_supported(path / "operator", operator, ("Equal", "Exists"))


# --- events ---


CLUSTER_EVENT_NAMESPACES: Final = ("default", "kube-system")


def validate_event(event: RawObject) -> Iterator[FieldError]:
    """An event is in the namespace of its object, or in the default one for cluster-scoped objects."""
    about = event.get("involvedObject", "namespace", default="")
    allowed = (about,) if about else CLUSTER_EVENT_NAMESPACES
    if event.metadata.namespace not in allowed:
        yield invalid(
            FieldPath("involvedObject") / "namespace", about, "does not match event.namespace"
        )


# --- services and endpoints ---

HEADLESS: Final = "None"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
SERVICE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
ADDRESS_TYPES: Final = ("IPv4", "IPv6", "FQDN")


def _shown_port(protocol: str, number: int) -> dict[str, Any]:
    """Protocol and number of a port, as Kubernetes shows them in errors."""
    return {
        "Name": "",
        "Protocol": protocol,
        "AppProtocol": None,
        "Port": number,
        "TargetPort": 0,
        "NodePort": 0,
    }


def validate_service(service: RawObject) -> Iterator[FieldError]:
    spec = service.get("spec", default={})
    type_, ports = spec.get("type") or "", parts(spec, "ports")
    if type_ not in SERVICE_TYPES:
        yield not_supported(SPEC / "type", type_, SERVICE_TYPES)
    if type_ == "ExternalName":
        if not spec.get("externalName"):
            yield required(SPEC / "externalName")
    elif not ports and spec.get("clusterIP") != "None":
        yield required(SPEC / "ports")
    names: set[str] = set()
    known: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path = SPEC / "ports" @ index
        number, protocol = port.get("port") or 0, port.get("protocol") or ""
        if (protocol, number) in known:
            yield duplicate(path, _shown_port(protocol, number))
        known.add((protocol, number))
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            yield required(path / "name")
        elif name:
            yield from validate_label(name, path / "name")
            if name in names:
                yield duplicate(path / "name", name)
        names.add(name)
        if not 1 <= (port.get("port") or 0) <= 65535:
            yield invalid(path / "port", port.get("port") or 0, PORT_RANGE)
        protocol = port.get("protocol") or ""
        if not protocol:
            yield required(path / "protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(path / "protocol", protocol, PROTOCOLS)
    yield from _validate_service_addresses(spec)


def _validate_service_addresses(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    if spec.get("type") != "ExternalName" and spec.get("clusterIP") != HEADLESS:
        addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
        for index, address in enumerate(addresses):
            if address and parse_address(str(address)) is None:
                yield invalid(SPEC / "clusterIPs" @ index, address, NOT_AN_ADDRESS)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        for problem in address_name_problems(str(address)):
            yield invalid(SPEC / "externalIPs" @ index, address, problem)


def validate_service_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """The address of a service is immutable once set."""
    before, after = old.get("spec", "clusterIP"), new.get("spec", "clusterIP")
    has_address = "ExternalName" not in (old.get("spec", "type"), new.get("spec", "type"))
    if before and has_address and after != before:
        yield invalid(SPEC / "clusterIP", after or "", IMMUTABLE)


def validate_endpoint_slice(endpoint_slice: RawObject) -> Iterator[FieldError]:
    type_ = endpoint_slice.get("addressType", default="")
    if not type_:
        yield required(FieldPath("addressType"))
    elif type_ not in ADDRESS_TYPES:
        yield not_supported(FieldPath("addressType"), type_, ADDRESS_TYPES)


# --- volumes ---


def validate_volume_claim(claim: RawObject) -> Iterator[FieldError]:
    spec = claim.get("spec", default={})
    if not spec.get("accessModes"):
        yield required(SPEC / "accessModes", "at least 1 access mode is required")
    if not _mapping(_mapping(spec.get("resources")).get("requests")).get("storage"):
        yield required(SPEC / "resources[storage]")


# A claim is bound once, may grow, and may change its attributes.
_CLAIM_MAY_CHANGE: Final = ("resources", "volumeAttributesClassName")


def validate_volume_claim_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    before, after = _mapping(old.get("spec")), _mapping(new.get("spec"))
    free = {*_CLAIM_MAY_CHANGE}
    if not before.get("volumeName"):
        free.add("volumeName")
    if not before.get("storageClassName"):
        free.add("storageClassName")
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if changed - free:
        yield forbidden(
            SPEC,
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )


def validate_volume(volume: RawObject) -> Iterator[FieldError]:
    spec = volume.get("spec", default={})
    if not spec.get("accessModes"):
        yield required(SPEC / "accessModes")
    if not spec.get("capacity"):
        yield required(SPEC / "capacity")


def validate_storage_class(storage_class: RawObject) -> Iterator[FieldError]:
    if not storage_class.get("provisioner"):
        yield required(FieldPath("provisioner"))


def validate_storage_class_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(field) != old.get(field):
            yield forbidden(FieldPath(field), f"updates to {field} are forbidden.")
    yield from unchanged("volumeBindingMode")(new, old)


def validate_attachment(attachment: RawObject) -> Iterator[FieldError]:
    attacher = attachment.get("spec", "attacher", default="")
    if not attacher:
        yield required(SPEC / "attacher")
    for problem in caseless_subdomain_problems(attacher) if attacher else ():
        yield invalid(SPEC / "attacher", attacher, problem)
    node = attachment.get("spec", "nodeName", default="")
    for problem in subdomain_problems(node):
        yield invalid(SPEC / "nodeName", node, problem)
    source, path = _mapping(attachment.get("spec", "source")), SPEC / "source"
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        yield required(
            path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        )
    elif volume is not None and inline is not None:
        yield forbidden(
            path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        )
    elif volume is not None:
        place = path / "persistentVolumeName"
        if not volume:
            yield required(place, "must specify non empty persistentVolumeName")
        for problem in subdomain_problems(volume):
            yield invalid(place, volume, problem)


# --- revisions ---


def validate_revision(revision: RawObject) -> Iterator[FieldError]:
    number = revision.get("revision", default=0)
    if number < 0:
        yield invalid(FieldPath("revision"), number, NOT_NEGATIVE)
    if revision.get("data") is None:
        yield required(FieldPath("data"), "data is mandatory")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
