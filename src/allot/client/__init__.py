"""The client of a Kubernetes API server: one interface, over HTTP or in this process.

    resources      the kinds of the API: PODS, RESOURCE_CLAIMS, ... each with its `codec`
    client         get, list, create, update, patch, delete, watch; retries where that is safe
    transport      how requests travel: `in_process` (an ASGI application) or `http` (with `kubeconfig`)
    reflector      list and watch
    informer       a copy of a resource that follows the server, with indexes and handlers
    work_queue     keys to reconcile, each once at a time, with backoff after failures
    leader_election, events   a Lease that one of several replicas holds; events for users

Objects of resource.k8s.io are hub structs, all others views of raw JSON that keep every field. Objects
are shared by all readers: to change one, copy it.
"""

from typing import TYPE_CHECKING

from allot._lazy import lazy_names

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.client.connection import connect
    from allot.client.errors import ApiStatusError, ClientError, ConfigError, TransportError
    from allot.client.event_recorder import EventRecorder
    from allot.client.informer import Informer, InformerFactory, ResourceEventHandlers
    from allot.client.leader_election import LeaderElector
    from allot.client.options import DeleteOptions, PatchType, Scope
    from allot.client.resources import (
        DEVICE_CLASSES,
        DEVICE_TAINT_RULES,
        NAMESPACES,
        NODES,
        PODS,
        RESOURCE_CLAIM_TEMPLATES,
        RESOURCE_CLAIMS,
        RESOURCE_POOL_STATUS_REQUESTS,
        RESOURCE_SLICES,
        Resource,
        raw_resource,
    )
    from allot.client.work_queue import WorkQueue

__all__ = [
    "DEVICE_CLASSES",
    "DEVICE_TAINT_RULES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_POOL_STATUS_REQUESTS",
    "RESOURCE_SLICES",
    "ApiStatusError",
    "Client",
    "ClientError",
    "ConfigError",
    "DeleteOptions",
    "EventRecorder",
    "Informer",
    "InformerFactory",
    "LeaderElector",
    "PatchType",
    "Resource",
    "ResourceEventHandlers",
    "Scope",
    "TransportError",
    "WorkQueue",
    "connect",
    "raw_resource",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "Client": "allot.client.client",
            "connect": "allot.client.connection",
            "ApiStatusError": "allot.client.errors",
            "ClientError": "allot.client.errors",
            "ConfigError": "allot.client.errors",
            "TransportError": "allot.client.errors",
            "EventRecorder": "allot.client.event_recorder",
            "Informer": "allot.client.informer",
            "InformerFactory": "allot.client.informer",
            "ResourceEventHandlers": "allot.client.informer",
            "LeaderElector": "allot.client.leader_election",
            "DeleteOptions": "allot.client.options",
            "PatchType": "allot.client.options",
            "Scope": "allot.client.options",
            "DEVICE_CLASSES": "allot.client.resources",
            "DEVICE_TAINT_RULES": "allot.client.resources",
            "NAMESPACES": "allot.client.resources",
            "NODES": "allot.client.resources",
            "PODS": "allot.client.resources",
            "RESOURCE_CLAIMS": "allot.client.resources",
            "RESOURCE_CLAIM_TEMPLATES": "allot.client.resources",
            "RESOURCE_POOL_STATUS_REQUESTS": "allot.client.resources",
            "RESOURCE_SLICES": "allot.client.resources",
            "Resource": "allot.client.resources",
            "raw_resource": "allot.client.resources",
            "WorkQueue": "allot.client.work_queue",
        },
    )
