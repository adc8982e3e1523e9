"""Defaults of the kinds that run pods from a template, and of disruption budgets."""

from __future__ import annotations

from typing import Final

from allot.apiserver.defaults.filling import (
    Data,
    change,
    change_at,
    change_each,
    fill,
    is_missing,
    make,
    part,
)
from allot.apiserver.defaults.pods import template_defaults

HISTORY: Final = 10
MAX_INT32: Final = 2**31 - 1

# Counters that clients insist on finding in a status, be they zero.
_REPLICAS: Final = {"replicas": 0}
STATUS_COUNTERS: Final[dict[str, Data]] = {
    "ReplicationController": _REPLICAS,
    "ReplicaSet": _REPLICAS,
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "PodDisruptionBudget": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
}


def _with_counters(workload: Data, kind: str) -> Data:
    return change(workload, "status", lambda status: fill(status, **STATUS_COUNTERS[kind]))


def replication_controller_defaults(controller: Data) -> Data:
    """Selector and labels come from the template."""
    labels = part(controller, "spec", "template", "metadata", "labels")
    controller = change(controller, "spec", lambda spec: fill(template_defaults(spec), replicas=1))
    if labels:
        controller = change(
            controller,
            "spec",
            lambda spec: spec if spec.get("selector") else spec | {"selector": labels},
        )
        controller = _with_labels(controller, labels)
    return _with_counters(controller, "ReplicationController")


def _with_labels(owner: Data, labels: dict[str, str]) -> Data:
    """An object without labels of its own takes those of its template."""
    return change(
        owner,
        "metadata",
        lambda metadata: metadata if metadata.get("labels") else metadata | {"labels": labels},
    )


def deployment_defaults(deployment: Data) -> Data:
    return change(deployment, "spec", _deployment_spec_defaults)


def _deployment_spec_defaults(spec: Data) -> Data:
    spec = fill(
        template_defaults(spec),
        replicas=1,
        revisionHistoryLimit=HISTORY,
        progressDeadlineSeconds=600,
    )
    return make(
        spec,
        "strategy",
        lambda strategy: _rolling(strategy, maxUnavailable="25%", maxSurge="25%"),
    )


def _rolling(strategy: Data, **parameters: object) -> Data:
    """An update strategy that rolls unless it says otherwise."""
    strategy = fill(strategy, type="RollingUpdate")
    if strategy["type"] != "RollingUpdate":
        return strategy
    return make(strategy, "rollingUpdate", lambda rolling: fill(rolling, **parameters))


def replica_set_defaults(replica_set: Data) -> Data:
    replica_set = change(
        replica_set, "spec", lambda spec: fill(template_defaults(spec), replicas=1)
    )
    return _with_counters(replica_set, "ReplicaSet")


def stateful_set_defaults(stateful_set: Data) -> Data:
    stateful_set = change(stateful_set, "spec", _stateful_set_spec_defaults)
    return _with_counters(stateful_set, "StatefulSet")


def _stateful_set_spec_defaults(spec: Data) -> Data:
    spec = fill(
        template_defaults(spec),
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=HISTORY,
    )
    spec = make(
        spec,
        "persistentVolumeClaimRetentionPolicy",
        lambda policy: fill(policy, whenDeleted="Retain", whenScaled="Retain"),
    )
    spec = make(spec, "updateStrategy", _stateful_strategy_defaults)
    return change_each(spec, "volumeClaimTemplates", _claim_template_defaults)


def _stateful_strategy_defaults(strategy: Data) -> Data:
    # A strategy that names its type but no parameters has none: so it is in Kubernetes.
    if not is_missing(strategy.get("type")) and "rollingUpdate" not in strategy:
        return strategy
    return _rolling(strategy, partition=0)


def _claim_template_defaults(claim: Data) -> Data:
    """The templates are whole objects, of a kind that goes without saying."""
    claim = change(claim, "spec", lambda spec: fill(spec, volumeMode="Filesystem"))
    claim = fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
    return make(claim, "status", lambda status: fill(status, phase="Pending"))


def daemon_set_defaults(daemon_set: Data) -> Data:
    daemon_set = change(daemon_set, "spec", _daemon_set_spec_defaults)
    return _with_counters(daemon_set, "DaemonSet")


def _daemon_set_spec_defaults(spec: Data) -> Data:
    spec = fill(template_defaults(spec), revisionHistoryLimit=HISTORY)
    return make(
        spec,
        "updateStrategy",
        lambda strategy: _rolling(strategy, maxUnavailable=1, maxSurge=0),
    )


def budget_defaults(budget: Data) -> Data:
    return _with_counters(budget, "PodDisruptionBudget")


# --- batch ---


def job_defaults(job: Data) -> Data:
    labels = part(job, "spec", "template", "metadata", "labels")
    job = change(job, "spec", _job_spec_defaults)
    return _with_labels(job, labels) if labels else job


def _job_spec_defaults(spec: Data) -> Data:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec = spec | {"completions": 1}
    per_index = spec.get("backoffLimitPerIndex") is not None
    has_failure_policy = spec.get("podFailurePolicy") is not None
    spec = fill(
        template_defaults(spec),
        parallelism=1,
        backoffLimit=MAX_INT32 if per_index else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="Failed" if has_failure_policy else "TerminatingOrFailed",
    )
    return change(
        spec,
        "podFailurePolicy",
        lambda policy: change_each(policy, "rules", _failure_rule_defaults),
    )


def _failure_rule_defaults(rule: Data) -> Data:
    return change_each(rule, "onPodConditions", lambda pattern: fill(pattern, status="True"))


CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"


def with_job_selector(job: Data) -> Data:
    """A new job whose pods are found by its uid, which its metadata must have by now.

    With `manualSelector` the selector is the client's business.
    """
    spec, metadata = job.get("spec"), job["metadata"]
    if not isinstance(spec, dict) or spec.get("manualSelector"):
        return job
    uid, name = metadata["uid"], metadata["name"]
    labels = {
        JOB_NAME: name,
        "job-name": name,
        CONTROLLER_UID: uid,
        "controller-uid": uid,
    }
    spec = make(
        spec,
        "template",
        lambda template: make(
            template,
            "metadata",
            lambda template_metadata: (
                template_metadata | {"labels": part(template_metadata, "labels") | labels}
            ),
        ),
    )
    matched = part(spec, "selector", "matchLabels") | {CONTROLLER_UID: uid}
    selector = part(spec, "selector") | {"matchLabels": matched}
    return job | {"spec": spec | {"selector": selector}}


def cron_job_defaults(cron_job: Data) -> Data:
    """The jobs it makes get their own defaults when they are made."""
    cron_job = change(
        cron_job,
        "spec",
        lambda spec: fill(
            spec,
            concurrencyPolicy="Allow",
            suspend=False,
            successfulJobsHistoryLimit=3,
            failedJobsHistoryLimit=1,
        ),
    )
    return change_at(cron_job, ("spec", "jobTemplate", "spec"), template_defaults)
