"""Pods and pod templates: containers, probes, volumes, and the tolerations every pod gets."""

from __future__ import annotations

from functools import partial
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
    without,
)
from allot.validation.container_resources import HUGE_PAGES
from allot.validation.pod_resources import aggregate_requests, is_of_whole_pods

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
    owner = change(owner, "template", lambda template: fill(template, metadata={}))
    return change_at(owner, ("template", "spec"), _template_spec_defaults)


def _template_spec_defaults(spec: Data) -> Data:
    return pod_spec_defaults(without(spec, "overhead") if spec.get("overhead") == {} else spec)


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
    for name in ("schedulingGroup", "evictionResponders"):
        spec = without(spec, name)  # needs a feature gate of Kubernetes that is off
    for name in CONTAINER_LISTS:
        spec = change_each(spec, name, _container_defaults)
    return change_each(spec, "volumes", _volume_defaults)


def _running_pod_defaults(spec: Data) -> Data:
    spec = fill(pod_spec_defaults(spec), enableServiceLinks=True)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec = spec | {"terminationGracePeriodSeconds": 1}
    for name in ("initContainers", "containers"):
        spec = change_each(spec, name, _request_what_is_limited)
        if spec.get("hostNetwork"):
            spec = change_each(spec, name, _use_host_ports)
    return change(spec, "resources", lambda resources: _pod_requests(resources, spec))


def _pod_status_defaults(status: Data) -> Data:
    if "conditions" in status:
        status = change_each(status, "conditions", _condition_defaults)
    for name in CONTAINER_STATUS_LISTS:
        if name in status:
            status = change_each(status, name, _container_status_defaults)
    return with_addresses(status, "podIP", "podIPs")


def _condition_defaults(condition: Data) -> Data:
    condition = condition if "status" in condition else condition | {"status": ""}
    return always_written(condition, "lastProbeTime", "lastTransitionTime")


def with_addresses(owner: Data, single: str, several: str, key: str = "ip") -> Data:
    """An object whose first address is also in a field of its own, which counts if they differ."""
    if single not in owner and several not in owner:
        return owner
    one, many = owner.get(single), owner.get(several)
    first = many[0] if isinstance(many, list) and many else None
    if key:
        first = first.get(key) if isinstance(first, dict) else None
    if one == first or not (one or first):
        return owner
    if not one:
        return owner | {single: first}
    return owner | {several: [{key: one} if key else one]}


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
    return _without_stop_signal(container)


def _without_stop_signal(container: Data) -> Data:
    """Signals of containers need a feature gate of Kubernetes that is off."""
    lifecycle = container.get("lifecycle")
    if not isinstance(lifecycle, dict) or "stopSignal" not in lifecycle:
        return container
    kept = {name: hook for name, hook in lifecycle.items() if name != "stopSignal"}
    if kept:
        return container | {"lifecycle": kept}
    return {name: value for name, value in container.items() if name != "lifecycle"}


def pull_policy(image: object) -> str:
    """An image that may change under its name is pulled every time."""
    if not isinstance(image, str) or not image or "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _variable_defaults(variable: Data) -> Data:
    variable = change_at(variable, ("valueFrom", "fieldRef"), _field_reference_defaults)
    variable = change_at(variable, ("valueFrom", "resourceFieldRef"), _resource_reference_defaults)
    return change_at(
        variable, ("valueFrom", "fileKeyRef"), lambda reference: fill(reference, optional=False)
    )


def _field_reference_defaults(reference: Data) -> Data:
    return fill(reference, apiVersion="v1")


def _resource_reference_defaults(reference: Data) -> Data:
    return fill(reference, divisor="0")


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
    return change(container, "resources", _with_requests)


def _pod_requests(resources: Data, spec: Data) -> Data:
    """A whole pod requests what its containers do together, and else what it is limited to."""
    limits, requests = part(resources, "limits"), part(resources, "requests")
    pages = {
        name: str(amount)
        for name, amount in aggregate_requests(spec, "limits").items()
        if name.startswith(HUGE_PAGES)
    }
    if pages.keys() - limits.keys():
        limits = pages | limits
        resources = resources | {"limits": limits}
    together = {
        name: str(amount)
        for name, amount in aggregate_requests(spec).items()
        if is_of_whole_pods(name) and not name.startswith(HUGE_PAGES)
    }
    limited = {name: amount for name, amount in limits.items() if is_of_whole_pods(name)}
    filled = limited | together | requests
    return resources | {"requests": filled} if filled != requests else resources


def _with_requests(resources: Data) -> Data:
    limits, requests = part(resources, "limits"), part(resources, "requests")
    missing = {name: amount for name, amount in limits.items() if name not in requests}
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
    "iscsi": {"iscsiInterface": "default", "lun": 0},
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
        owner = change(owner, name, partial(_filled, SOURCE_DEFAULTS[name]))
    return change(owner, "hostPath", _host_path_defaults)


def _filled(defaults: Data, source: Data) -> Data:
    """An empty string stays where it is not the same as none, and is refused."""
    missing = {name: value for name, value in defaults.items() if source.get(name) is None}
    return source | missing if missing else source


def _host_path_defaults(source: Data) -> Data:
    return source | {"type": ""} if source.get("type") is None else source


def _volume_defaults(volume: Data) -> Data:
    if not any(isinstance(source, dict) for source in volume.values()):
        return volume | {"emptyDir": {}}
    volume = source_defaults(volume)
    volume = change(volume, "downwardAPI", _downward_defaults)
    volume = change(volume, "projected", _projected_defaults)
    volume = change_at(volume, ("ephemeral", "volumeClaimTemplate"), _claim_template_defaults)
    return change(
        volume,
        "image",
        lambda image: fill(image, pullPolicy=pull_policy(image.get("reference"))),
    )


def _claim_template_defaults(template: Data) -> Data:
    template = template if "metadata" in template else {"metadata": {}} | template
    return change(template, "spec", lambda spec: fill(spec, volumeMode="Filesystem"))


def _projected_defaults(source: Data) -> Data:
    if not source.get("sources"):
        return source | {"sources": None}
    return change_each(source, "sources", _projection_defaults)


def _downward_defaults(source: Data) -> Data:
    source = change_each(
        source, "items", lambda item: change(item, "fieldRef", _field_reference_defaults)
    )
    return change_each(
        source, "items", lambda item: change(item, "resourceFieldRef", _resource_reference_defaults)
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
