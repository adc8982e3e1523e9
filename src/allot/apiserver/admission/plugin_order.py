"""The admission plugins of an API server, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from allot.apiserver.admission.chain import AdmissionPlugin
from allot.apiserver.admission.custom_resource_lifecycle import CustomResourceLifecycle
from allot.apiserver.admission.default_ingress_class import DefaultIngressClass
from allot.apiserver.admission.default_storage_class import DefaultStorageClass
from allot.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from allot.apiserver.admission.device_exclusivity import DeviceExclusivity
from allot.apiserver.admission.escalation import EscalationCheck
from allot.apiserver.admission.limit_ranger import LimitRanger
from allot.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from allot.apiserver.admission.node_restriction import NodeRestriction
from allot.apiserver.admission.priority import Priority, SystemPriorityClasses
from allot.apiserver.admission.runtime_classes import RuntimeClassAdmission
from allot.apiserver.admission.service_accounts import ServiceAccountAdmission
from allot.apiserver.admission.storage_object_in_use_protection import (
    StorageObjectInUseProtection,
)
from allot.apiserver.admission.stored_without_effect import StoredWithoutEffectWarning
from allot.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from allot.apiserver.admission.unknown_drivers import UnknownDriverWarning
from allot.apiserver.auth.rbac.policy_feed import PolicyFeed
from allot.apiserver.pacing import Workers
from allot.apiserver.watch_cache.caches import Caches
from allot.features import FeatureGates
from allot.storage.interface import Store


def ordered_plugins(
    store: Store,
    caches: Caches,
    gates: FeatureGates,
    policies: PolicyFeed,
    node_restriction: NodeRestriction,
    more: Sequence[AdmissionPlugin],
    workers: Workers,
    *,
    taints_new_nodes: bool,
    protects_volumes: bool,
) -> list[AdmissionPlugin]:
    """All but quotas, policies and webhooks, which the chain runs last."""
    return [
        EscalationCheck(policies, workers),
        node_restriction,
        NamespaceLifecycle(),
        CustomResourceLifecycle(caches),
        LimitRanger(caches, workers),
        ServiceAccountAdmission(caches),
        DefaultTolerationSeconds(),
        *([TaintNodesByCondition()] if taints_new_nodes else ()),
        *([StorageObjectInUseProtection()] if protects_volumes else ()),
        DefaultStorageClass(caches),
        DefaultIngressClass(caches),
        Priority(caches),
        SystemPriorityClasses(),
        RuntimeClassAdmission(caches, workers),
        *more,
        UnknownDriverWarning(caches, gates),
        StoredWithoutEffectWarning(),
        DeviceExclusivity(store, caches, gates, workers),
    ]
