"""The users as which the components of a cluster work. What they may do is in the roles of the API server."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

AUTHENTICATED: Final = "system:authenticated"
ACCOUNT_NAMESPACE: Final = "kube-system"
_ACCOUNTS: Final = "system:serviceaccount"


class ComponentUser(NamedTuple):
    """A user and its groups."""

    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)


SCHEDULER: Final = ComponentUser("system:kube-scheduler")
CONTROLLER_MANAGER: Final = ComponentUser("system:kube-controller-manager")
NODES: Final = ComponentUser("allot:node-simulator")
DRIVERS: Final = ComponentUser("allot:driver")
_OTHER_ACCOUNTS: Final = {
    "resourceclaim-controller": "resource-claim-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "serviceaccount-controller": "service-account-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "node-lifecycle-controller": "node-controller",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "taint-eviction-controller": "node-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "daemonset-controller": "daemon-set-controller",
    "replicationcontroller-controller": "replication-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "service-cidr-controller": "service-cidrs-controller",
}


def controller_account(controller: str) -> str:
    """The service account of a controller, in kube-system, as Kubernetes calls it."""
    return _OTHER_ACCOUNTS.get(controller, controller)


def controller_user(controller: str) -> ComponentUser:
    name = f"{_ACCOUNTS}:{ACCOUNT_NAMESPACE}:{controller_account(controller)}"
    groups = (f"{_ACCOUNTS}s", f"{_ACCOUNTS}s:{ACCOUNT_NAMESPACE}", AUTHENTICATED)
    return ComponentUser(name, groups)


@lru_cache(256)
def component_user(name: str) -> ComponentUser | None:
    """The component of this name; None if the user is not a component."""
    for known in (SCHEDULER, CONTROLLER_MANAGER, NODES, DRIVERS):
        if known.name == name:
            return known
    prefix = f"{_ACCOUNTS}:{ACCOUNT_NAMESPACE}:"
    return controller_user(name.removeprefix(prefix)) if name.startswith(prefix) else None
