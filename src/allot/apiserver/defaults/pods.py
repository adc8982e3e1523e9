"""Pods and pod templates: containers, probes, volumes, and the tolerations every pod gets."""

from __future__ import annotations

from typing import Final

from allot.apiserver.defaults.filling import (
    Data,
    PartDefaults,
    always_written,
    change,
    change_at,
    change_each,
    fill,
    is_missing,
    items,
    part,
)

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
CONTAINER_STATUS_LISTS: Final = (
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
FILE_MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600
GRACE_SECONDS: Final = 30


def template_defaults(owner: Data) -> Data:
    """An object with a pod template in `template`."""
    return change_at(owner, ("template", "spec"), pod_spec_defaults)


def _same_service_account(spec: Data) -> Data:
    """The account has an older name, too."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if not account:
        return spec
    both = {"serviceAccountName": account, "serviceAccount": account}
    return spec if spec.items() >= both.items() else spec | both


def pod_spec_defaults(spec: Data) -> Data:
    """What pods and pod templates have in common."""
    spec = _same_service_account(spec)
    spec = fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=GRACE_SECONDS,
        schedulerName="default-scheduler",
        securityContext={},
    )
    for name in CONTAINER_LISTS:
        spec = change_each(spec, name, _container_defaults)
    return change_each(spec, "volumes", _volume_defaults)


def _running_pod_defaults(spec: Data) -> Data:
    spec = fill(pod_spec_defaults(spec), enableServiceLinks=True)
    for name in ("initContainers", "containers"):
        spec = change_each(spec, name, _request_what_is_limited)
        if spec.get("hostNetwork"):
            spec = change_each(spec, name, _use_host_ports)
    return change(spec, "resources", lambda resources: _pod_requests(resources, spec))


def _pod_status_defaults(status: Data) -> Data:
    status = change_each(status, "conditions", _condition_defaults)
    for name in CONTAINER_STATUS_LISTS:
        status = change_each(status, name, _container_status_defaults)
    return status


def _condition_defaults(condition: Data) -> Data:
    return always_written(condition, "lastProbeTime", "lastTransitionTime")


def _container_status_defaults(status: Data) -> Data:
    for name in ("state", "lastState"):
        status = change_at(status, (name, "running"), lambda s: always_written(s, "startedAt"))
        status = change_at(
            status, (name, "terminated"), lambda s: always_written(s, "startedAt", "finishedAt")
        )
    return status


pod_defaults: Final = PartDefaults({"spec": _running_pod_defaults, "status": _pod_status_defaults})
"""A pod: what templates get, and what only running pods need."""

# --- containers ---


def _container_defaults(container: Data) -> Data:
    container = fill(
        container,
        imagePullPolicy=pull_policy(container.get("image")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    container = change_each(container, "ports", lambda port: fill(port, protocol="TCP"))
    container = change_each(container, "env", _variable_defaults)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        container = change(container, probe, _probe_defaults)
    for hook in ("postStart", "preStop"):
        container = change_at(container, ("lifecycle", hook, "httpGet"), _http_get_defaults)
    return container


def pull_policy(image: object) -> str:
    """An image that may change under its name is pulled every time."""
    if not isinstance(image, str) or not image or "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _variable_defaults(variable: Data) -> Data:
    return change_at(variable, ("valueFrom", "fieldRef"), _field_reference_defaults)


def _field_reference_defaults(reference: Data) -> Data:
    return fill(reference, apiVersion="v1")


_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}  # fmt: skip


def _probe_defaults(probe: Data) -> Data:
    # Here zero means "not set": none of these numbers can be zero.
    missing = {name: value for name, value in _PROBE.items() if not probe.get(name)}
    probe = change(probe | missing if missing else probe, "httpGet", _http_get_defaults)
    grpc = probe.get("grpc")
    if isinstance(grpc, dict) and grpc.get("service") is None:
        probe = probe | {"grpc": grpc | {"service": ""}}
    return probe


def _http_get_defaults(action: Data) -> Data:
    return fill(action, path="/", scheme="HTTP")


def _request_what_is_limited(container: Data) -> Data:
    """A limit without a request is also the request."""
    return change(container, "resources", lambda resources: _with_requests(resources, set()))


def _pod_requests(resources: Data, spec: Data) -> Data:
    """The same for the pod as a whole, as far as its containers do not say what they request."""
    requested = {
        name
        for field in ("initContainers", "containers")
        for container in items(spec, field)
        for name in part(container, "resources", "requests")
    }
    return _with_requests(resources, requested)


def _with_requests(resources: Data, except_for: set[str]) -> Data:
    limits, requests = part(resources, "limits"), part(resources, "requests")
    missing = {
        name: amount
        for name, amount in limits.items()
        if name not in requests and name not in except_for
    }
    return resources | {"requests": requests | missing} if missing else resources


def _use_host_ports(container: Data) -> Data:
    def with_host_port(port: Data) -> Data:
        return port if port.get("hostPort") else port | {"hostPort": port.get("containerPort", 0)}

    return change_each(container, "ports", with_host_port)


# --- volumes ---

# Fields of volume sources that the server defaults. Persistent volumes have some of them, too.
SOURCE_DEFAULTS: Final[dict[str, Data]] = {
    "secret": {"defaultMode": FILE_MODE},
    "configMap": {"defaultMode": FILE_MODE},
    "downwardAPI": {"defaultMode": FILE_MODE},
    "projected": {"defaultMode": FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "kind": "Shared",
        "readOnly": False,
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def source_defaults(owner: Data) -> Data:
    """The fields of whatever volume source is in `owner`."""
    for name in owner.keys() & SOURCE_DEFAULTS.keys():
        owner = change(owner, name, lambda source, name=name: fill(source, **SOURCE_DEFAULTS[name]))  # type: ignore[misc]
    return change(owner, "hostPath", _host_path_defaults)


def _host_path_defaults(source: Data) -> Data:
    return source | {"type": ""} if source.get("type") is None else source


def _volume_defaults(volume: Data) -> Data:
    if not any(isinstance(source, dict) for source in volume.values()):
        return volume | {"emptyDir": {}}
    volume = source_defaults(volume)
    volume = change(volume, "downwardAPI", _downward_defaults)
    volume = change(
        volume, "projected", lambda source: change_each(source, "sources", _projection_defaults)
    )
    volume = change_at(
        volume,
        ("ephemeral", "volumeClaimTemplate", "spec"),
        lambda spec: fill(spec, volumeMode="Filesystem"),
    )
    return change(
        volume,
        "image",
        lambda image: fill(image, pullPolicy=pull_policy(image.get("reference"))),
    )


def _downward_defaults(source: Data) -> Data:
    return change_each(
        source, "items", lambda item: change(item, "fieldRef", _field_reference_defaults)
    )


def _projection_defaults(source: Data) -> Data:
    source = change(source, "downwardAPI", _downward_defaults)
    return change(
        source, "serviceAccountToken", lambda token: fill(token, expirationSeconds=TOKEN_SECONDS)
    )


# --- tolerations ---

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
OUTAGE_SECONDS: Final = 300


def tolerate_short_outages(spec: Data) -> Data:
    """A pod stays for five minutes on a node that does not answer, unless it says otherwise.

    Kubernetes does this in admission: it is no default, and the tolerations belong to no field manager.
    """
    tolerations = items(spec, "tolerations")
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": OUTAGE_SECONDS,
        }
        for key in (NOT_READY, UNREACHABLE)
        if not any(_is_about(toleration, key) for toleration in tolerations)
    ]
    return spec | {"tolerations": [*tolerations, *added]} if added else spec


def _is_about(toleration: Data, key: str) -> bool:
    key_fits = is_missing(toleration.get("key")) or toleration["key"] == key
    effect = toleration.get("effect")
    return key_fits and (is_missing(effect) or effect == "NoExecute")
