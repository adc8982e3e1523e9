"""Objects that make controllers and the scheduler's other plugins work: replicas without end, owners in circles, terms.

Each function gives objects in the order in which they are created, or a flood.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from tests.attacks.floods import (
    CONFIG_MAPS,
    MERGE_PATCH,
    PODS,
    Flood,
    Run,
    Socket,
    creating,
    together,
)
from tests.attacks.manifests import Manifest, collection, config_map

MOST_REPLICAS: Final = 2**31 - 1
CONTAINERS: Final = [{"name": "c", "image": "pause"}]
LABELS: Final = {"app": "bomb"}


def plain_pod(name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"containers": CONTAINERS, **spec},
    }


def workload(kind: str, version: str, name: str, template: Manifest, **spec: Any) -> Manifest:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def _template(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    metadata = {"labels": {"app": name}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}


def endless_replicas() -> list[Manifest]:
    """As many replicas as a number can say, of every kind that has replicas."""
    made = []
    for kind, more in (
        ("Deployment", {}),
        ("ReplicaSet", {}),
        ("StatefulSet", {"podManagementPolicy": "Parallel", "serviceName": "s"}),
    ):
        name = kind.lower()
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": MOST_REPLICAS, "selector": selector, **more}
        made.append(workload(kind, "apps/v1", name, _template(name), **spec))
    never = _template("job", restartPolicy="Never")
    endless = {"parallelism": MOST_REPLICAS, "completions": MOST_REPLICAS}
    made.append(workload("Job", "batch/v1", "job", never, **endless))
    indexed = {"parallelism": 10_000, "completions": 10_000, "completionMode": "Indexed"}
    made.append(workload("Job", "batch/v1", "indexed", never, **indexed))
    return made


def failing_jobs(jobs: int = 20, parallelism: int = 200) -> list[Manifest]:
    """Jobs whose pods fail at once and are tried again without end, and replicas that end as soon as they run."""
    ends = {"allot.dev/run-seconds": "0", "allot.dev/exit-code": "1"}
    template = _template("failing", ends, restartPolicy="Never")
    made = [
        workload(
            "Job",
            "batch/v1",
            f"failing-{number}",
            template,
            parallelism=parallelism,
            completions=parallelism,
            backoffLimit=MOST_REPLICAS,
        )
        for number in range(jobs)
    ]
    selector = {"matchLabels": {"app": "ending"}}
    ending = _template("ending", ends)
    made.append(
        workload("ReplicaSet", "apps/v1", "ending", ending, replicas=500, selector=selector)
    )
    return made


def cron_jobs(number: int = 400) -> list[Manifest]:
    """Every minute, all of them, with very many pods."""
    job = {"spec": {"template": _template("cron", restartPolicy="Never"), "parallelism": 5}}
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": f"cron-{index}"},
            "spec": {"schedule": "* * * * *", "jobTemplate": job, "startingDeadlineSeconds": 10**9},
        }
        for index in range(number)
    ]


def selectors_over_everything(number: int = 300, pods: int = 300) -> list[Manifest]:
    """Budgets and autoscalers that are about all pods, and pods that come and go."""
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{index}"},
            "spec": {"maxUnavailable": "50%", "selector": {}},
        }
        for index in range(number)
    ]
    scaled = workload(
        "Deployment",
        "apps/v1",
        "scaled",
        _template("scaled"),
        replicas=pods,
        selector={"matchLabels": {"app": "scaled"}},
    )
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    autoscalers = [
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": f"scaler-{index}"},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": index + 1},
        }
        for index in range(number)
    ]
    return [*budgets, scaled, *autoscalers]


def quotas(number: int = 200, names: int = 60) -> list[Manifest]:
    """Quotas that all count every object there is, under many names and scopes.

    None is for CPU or memory: ordinary pods, which ask for none, would rightly be refused.
    """
    hard = {"pods": "100000", "secrets": "100000", "configmaps": "100000"}
    hard |= {f"count/kinds{index}.example.com": "1000" for index in range(names)}
    scopes: list[Manifest] = [
        {"scopeName": "PriorityClass", "operator": "NotIn", "values": [f"v{n}" for n in range(500)]}
    ]
    made: list[Manifest] = []
    for index in range(number):
        scoped = index % 2 == 1
        spec: Manifest = {"hard": {"pods": "100000"} if scoped else hard}
        if scoped:
            spec["scopeSelector"] = {"matchExpressions": scopes}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": f"quota-{index}"},
                "spec": spec,
            }
        )
    return made


def affinity_terms(pods: int = 200, terms: int = 100) -> list[Manifest]:
    """Pods that want to be near and far from all others, in many ways at once."""

    def term(number: int) -> Manifest:
        selector = {
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": [f"v{n}" for n in range(100)]},
                {"key": f"k{number}", "operator": "DoesNotExist"},
            ]
        }
        return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}

    every = [term(number) for number in range(terms)]
    preferred = [{"weight": 1, "podAffinityTerm": each} for each in every]
    expressions = [
        {"key": f"k{number}", "operator": "NotIn", "values": [f"v{n}" for n in range(50)]}
        for number in range(200)
    ]
    node_terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}] * 10}
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": every},
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": node_terms},
    }
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": f"example.com/zone-{number}",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": LABELS},
        }
        for number in range(50)
    ]
    return [
        plain_pod(f"affine-{number}", affinity=affinity, topologySpreadConstraints=spread)
        for number in range(pods)
    ]


def preemption(pods: int = 600, wanting: int = 200) -> list[Manifest]:
    """Pods of low priority that fill the nodes, budgets that protect them all, and important pods that do not fit."""

    def priority(name: str, value: int) -> Manifest:
        return {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }

    def sized(name: str, cpu: int, priority_class: str) -> Manifest:
        resources = {"requests": {"cpu": str(cpu)}}
        containers = [{"name": "c", "image": "pause", "resources": resources}]
        made = plain_pod(name, priorityClassName=priority_class)
        made["spec"]["containers"] = containers
        return made

    budgets = selectors_over_everything(100)[:100]
    for each in budgets:
        each["spec"] = {"minAvailable": "100%", "selector": {"matchLabels": LABELS}}
    each_cpu = 200_000 // pods - 1
    return [
        priority("low", 1),
        priority("high", 1000),
        *budgets,
        *(sized(f"low-{number}", each_cpu, "low") for number in range(pods)),
        *(sized(f"high-{number}", each_cpu * 3 // 2, "high") for number in range(wanting)),
    ]


# --- owners ---


def owners(ring: int = 1000, dependents: int = 5000) -> Run:
    """ConfigMaps that own each other in circles and chains, one that owns thousands, and foreground deletions of them."""

    async def run(flood: Flood) -> None:
        uids: dict[str, str] = {}

        async def create(client: Socket, name: str, owner: str = "") -> None:
            made = config_map(name, {})
            if owner:
                made["metadata"]["ownerReferences"] = [_reference(owner, uids[owner])]
            body = await client.told("POST", CONFIG_MAPS, json.dumps(made).encode())
            uids[name] = body["metadata"]["uid"]

        async with Socket(flood) as client:
            await create(client, "root")
            before = "root"
            for number in range(ring):
                await create(client, f"ring-{number}", before)
                before = f"ring-{number}"
            closing = {"metadata": {"ownerReferences": [_reference(before, uids[before])]}}
            await client.ask(
                "PATCH", f"{CONFIG_MAPS}/ring-0", json.dumps(closing).encode(), MERGE_PATCH
            )
            for number in range(dependents):
                made = config_map(f"dependent-{number}", {})
                made["metadata"]["ownerReferences"] = [
                    _reference("root", uids["root"]),
                    *(_reference(f"missing-{each}", f"uid-{number}-{each}") for each in range(5)),
                ]
                await client.ask("POST", CONFIG_MAPS, json.dumps(made).encode())
            options = json.dumps({"propagationPolicy": "Foreground"}).encode()
            for name in ("ring-0", "root", f"ring-{ring // 2}"):
                await client.ask("DELETE", f"{CONFIG_MAPS}/{name}", options)

    return run


def _reference(name: str, uid: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": uid,
        "blockOwnerDeletion": True,
    }


# --- many ---


def namespace_full(objects: int = 20_000, name: str = "full") -> Run:
    """A namespace with so many objects, which is deleted at once."""

    async def run(flood: Flood) -> None:
        async with Socket(flood) as client:
            namespace = {"metadata": {"name": name}}
            await client.ask("POST", collection("Namespace"), json.dumps(namespace).encode())
        left = iter(range(objects))
        path = CONFIG_MAPS.replace("/default/", f"/{name}/")

        async def work() -> None:
            async with Socket(flood) as client:
                for number in left:
                    body = json.dumps(config_map(f"m-{number}", {"a": "b"})).encode()
                    while await client.ask("POST", path, body) == "429":
                        await asyncio.sleep(0.5)

        await together(flood, (work() for _ in range(4)))
        async with Socket(flood) as client:
            await client.ask("DELETE", f"{collection('Namespace')}/{name}")

    return run


def events(number: int = 20_000) -> Run:
    """Events about everything, faster than they are read."""
    made = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{index}"},
            "involvedObject": {"kind": "Pod", "name": f"p-{index % 100}", "namespace": "default"},
            "reason": "Bomb",
            "message": "x" * 1000,
            "type": "Warning",
        }
        for index in range(number)
    ]
    return creating(made)


def pods_with_log(size: int = 200_000) -> Manifest:
    made = plain_pod("talking")
    made["metadata"]["annotations"] = {
        "allot.dev/log": "every 1s: " + "x" * 500 + "\n" + ("line " * 20 + "\n") * (size // 101)
    }
    return made


def followed_logs(number: int = 1500) -> Run:
    """So many clients that follow the log of one pod."""

    async def run(flood: Flood) -> None:
        gate = asyncio.Semaphore(20)
        async with Socket(flood) as client:
            await client.ask("POST", PODS, json.dumps(pods_with_log()).encode())
        await asyncio.sleep(3)

        async def work() -> None:
            async with gate:
                client = await Socket(flood).__aenter__()
                await client.send(client.head("GET", f"{PODS}/talking/log?follow=true", 0))
            try:
                await client.read_all()
                flood.codes["ended"] += 1
            finally:
                await client.__aexit__()

        await together(flood, (work() for _ in range(number)))

    return run
