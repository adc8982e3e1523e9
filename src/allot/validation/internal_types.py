"""Values as Kubernetes' API server holds them, for errors that show a whole struct.

Such errors have the names of Go's fields, in the order of the struct, and also those that are not set. The types are
those of the protobuf tables, whose fields are mostly in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.protobuf.schema import SCALARS, Field, message

_PACKAGES: Final = {
    "RoleRef": "rbac.v1",
    "DeploymentStrategy": "apps.v1",
    "ResourceClaimSpec": "resource.v1",
}
_CONTAINER: Final = (
    "name", "image", "command", "args", "workingDir", "ports", "envFrom", "env", "resources", "resizePolicy",
    "restartPolicy", "restartPolicyRules", "volumeMounts", "volumeDevices", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy",
    "securityContext", "stdin", "stdinOnce", "tty",
)  # fmt: skip
_ORDERS: Final = {
    "PodSpec": (
        "volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy",
        "terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName",
        "serviceAccount", "automountServiceAccountToken", "nodeName", "hostNetwork", "hostPID", "hostIPC",
        "shareProcessNamespace", "securityContext", "imagePullSecrets", "hostname", "subdomain", "affinity",
        "schedulerName", "tolerations", "hostAliases", "priorityClassName", "priority", "dnsConfig", "readinessGates",
        "runtimeClassName", "enableServiceLinks", "preemptionPolicy", "overhead", "topologySpreadConstraints",
        "setHostnameAsFQDN", "os", "hostUsers", "schedulingGates", "resourceClaims", "resources",
    ),
    "Container": _CONTAINER,
    "EphemeralContainerCommon": _CONTAINER,
    "PodSecurityContext": (
        "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups",
        "supplementalGroupsPolicy", "fsGroup", "sysctls", "fsGroupChangePolicy", "seccompProfile", "appArmorProfile",
    ),
    "SecurityContext": (
        "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
        "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
    ),
    "VolumeMount": ("name", "readOnly", "recursiveReadOnly", "mountPath", "subPath", "mountPropagation", "subPathExpr"),
}  # fmt: skip
"""Where the order differs from that of the tables. Fields that are not listed follow."""
_GO_NAMES: Final = {
    "serviceAccount": "DeprecatedServiceAccount",
    **{
        name.casefold(): name
        for name in (
            "AWSElasticBlockStore", "APIGroup", "APIVersion", "CSI", "CephFS", "DNSConfig", "DNSPolicy", "FC", "FSGroup",
            "FSGroupChangePolicy", "FSType", "GCEPersistentDisk", "GMSACredentialSpec", "GMSACredentialSpecName", "GRPC",
            "HTTPGet", "HTTPHeaders", "IP", "ISCSI", "ISCSIInterface", "NFS", "OS", "PDName", "RBD", "SELinuxChangePolicy",
            "SELinuxOptions",
            "TCPSocket", "TTY", "UID", "URL", "WWIDs", "TargetWWNs",
        )
    },
}  # fmt: skip
_ZEROS: Final[Mapping[str, Any]] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "quantity": "0", "intstr": 0,
}  # fmt: skip


def internal_value(data: Mapping[str, Any], type_: str) -> dict[str, Any]:
    """An object of a type, such as `PodSpec`, with the names and fields of Go's struct."""
    return _struct(data, f"{_PACKAGES.get(type_, 'core.v1')}.{type_}")


def _struct(data: Mapping[str, Any], type_: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in _fields(type_):
        if not field.name:
            found |= _struct(data, field.type)
        else:
            found[_go_name(field.name)] = _value(data.get(field.name), field)
    return found


def _fields(type_: str) -> list[Field]:
    order = _ORDERS.get(type_.rpartition(".")[2], ())
    fields = {field.name: field for field in message(type_).fields}
    listed = [fields.pop(name) for name in order if name in fields]
    return [*listed, *fields.values()]


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or _GO_NAMES.get(name.casefold()) or name[:1].upper() + name[1:]


def _value(value: Any, field: Field) -> Any:
    match field.container:
        case "list" if isinstance(value, list):
            return [_item(item, field) for item in value]
        case "map" if isinstance(value, dict):
            return {name: _item(item, field) for name, item in sorted(value.items())}
        case "list" | "map":
            return None
    if value is None:
        if field.pointer:
            return None
        return _ZEROS.get(field.type) if field.type in SCALARS else _struct({}, field.type)
    return _item(value, field)


def _item(value: Any, field: Field) -> Any:
    if field.type in SCALARS or not isinstance(value, dict):
        return value
    if field.type.startswith("meta."):
        return value  # these types are the same in every version, with the names of JSON
    return _struct(value, field.type)
