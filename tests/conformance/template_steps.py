"""Pod templates: those of new pods, with the same mistakes, and what only templates or only some of their owners refuse.

    python -m tests.conformance.template_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount` and all DRA feature gates on, without a
scheduler and a controller manager. `gzip -9n` of what it prints is `data/templates-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance import pod_field_steps, pod_steps
from tests.conformance.pod_field_steps import CONTAINER
from tests.conformance.subresource_steps import MERGE, PODS, pod
from tests.conformance.wire_steps import (
    DEPLOYMENTS,
    IN_DEFAULT,
    STRATEGIC,
    Step,
    each,
    print_answers,
    workload,
)

Document = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
UNSAFE = "security.alpha.kubernetes.io/unsafe-sysctls"


def _created(spec: Document, **metadata: Any) -> Step:
    return Step("POST", f"{PODS}?dryRun=All", pod("x", spec, **metadata))


def _templated(spec: Document, **metadata: Any) -> Step:
    deployment = workload("x")
    template = deployment["spec"]["template"]
    template["spec"] = {"containers": [CONTAINER]} | spec
    template["metadata"] |= metadata
    return Step("POST", f"{DEPLOYMENTS}?dryRun=All", deployment)


def both(spec: Document, **metadata: Any) -> Iterator[Step]:
    """A pod, and a Deployment of such pods."""
    yield _created(spec, **metadata)
    yield _templated(spec, **metadata)


def templates() -> Iterator[Step]:
    """The pods of other steps."""
    for step in (*pod_steps.all_steps(), *pod_field_steps.all_steps()):
        body = step.body
        is_pod = step.method == "POST" and step.path.startswith(f"{PODS}?")
        if is_pod and isinstance(body, dict) and isinstance(body.get("spec"), dict):
            metadata = body["metadata"]
            labels = {"a": "b"} | (metadata.get("labels") or {})
            annotations = metadata.get("annotations") or {}
            yield _templated(body["spec"], labels=labels, annotations=annotations)


# --- owners ---


def owners() -> Iterator[Step]:
    for spec in each(
        {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 0}, {"restartPolicy": "Never", "activeDeadlineSeconds": 5},
        {"restartPolicy": "Never"}, {"restartPolicy": "Foo"}, {"ephemeralContainers": [{}]},
    ):  # fmt: skip
        for labels in each({"a": "b"}, {"a": "b", "bad!": "x"}, {"a": "bad value!"}, {"c": "d"}):
            yield from _owned(
                {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]} | spec}
            )


def _owned(template: Document) -> Iterator[Step]:
    selected = {"selector": {"matchLabels": {"a": "b"}}}
    paths: tuple[tuple[str, Document], ...] = (
        (f"{APPS}/deployments", selected),
        (f"{APPS}/replicasets", selected),
        (f"{APPS}/daemonsets", selected),
        (f"{APPS}/statefulsets", selected | {"serviceName": "s"}),
        (f"{IN_DEFAULT}/replicationcontrollers", {"selector": {"a": "b"}}),
        (f"{BATCH}/jobs", {}),
    )
    for path, spec in paths:
        body = {"metadata": {"name": "x"}, "spec": spec | {"template": template}}
        yield Step("POST", f"{path}?dryRun=All", body)
    body = {"metadata": {"name": "x"}, "template": template}
    yield Step("POST", f"{IN_DEFAULT}/podtemplates?dryRun=All", body)
    job = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    body = {"metadata": {"name": "x"}, "spec": job}
    yield Step("POST", f"{BATCH}/cronjobs?dryRun=All", body)


# --- profiles ---

LOCAL = {"type": "Localhost", "localhostProfile": "p"}
OTHER = LOCAL | {"localhostProfile": "q"}


def app_armor() -> Iterator[Step]:
    """Profiles in an annotation and in the field, of the container or of the pod."""
    for value in ("runtime/default", "localhost/p", "unconfined", "localhost/", "foo", ""):
        named = {"annotations": {f"{APP_ARMOR}c": value}}
        for profile in each(
            {}, {"type": "RuntimeDefault"}, {"type": "Unconfined"}, LOCAL, OTHER, {"type": "Localhost"}, {"type": "Foo"},
        ):  # fmt: skip
            context = {"securityContext": {"appArmorProfile": profile}}
            yield from both({"containers": [CONTAINER | context]}, **named)
            yield from both(context, **named)
            yield from both(context | {"os": {"name": "windows"}}, **named)
        yield from both({}, **named)
        yield from both({"os": {"name": "windows"}}, **named)
        first = [{"name": "i", "image": "i"}]
        yield from both({"initContainers": first}, annotations={f"{APP_ARMOR}i": value})
        unconfined = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
        default = {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}
        yield from both(default | {"containers": [CONTAINER | unconfined]}, **named)
        several = {f"{APP_ARMOR}c": value, f"{APP_ARMOR}d": "unconfined"}
        containers = [CONTAINER, CONTAINER | {"name": "d"}]
        yield from both({"containers": containers}, annotations=several)


def seccomp() -> Iterator[Step]:
    for value in ("runtime/default", "localhost/p", "unconfined", "docker/default", "foo", ""):
        for profile in each(None, {"type": "RuntimeDefault"}, LOCAL, OTHER, {}, {"type": "Foo"}):
            context = {"securityContext": {"seccompProfile": profile}}
            for name in (SECCOMP_OF_POD, f"{SECCOMP}c"):
                yield from both(context, annotations={name: value})
                yield from both({"containers": [CONTAINER | context]}, annotations={name: value})
    context = {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}
    containers = {"containers": [CONTAINER | context], "os": {"name": "windows"}}
    yield from both(containers, annotations={f"{SECCOMP}c": "unconfined"})


def noted() -> Iterator[Step]:
    unconfined = {"type": "Unconfined"}
    context = {"securityContext": {"appArmorProfile": unconfined, "seccompProfile": unconfined}}
    named = {
        f"{prefix}{name}": "runtime/default"
        for prefix in (SECCOMP, APP_ARMOR)
        for name in ("c", "d", "i")
    } | {SECCOMP_OF_POD: "runtime/default"}
    for own in each({}, context):
        first = [{"name": "i", "image": "i"} | own]
        containers = [CONTAINER | own, CONTAINER | {"name": "d"} | own]
        spec = {"containers": containers, "initContainers": first} | own
        yield from both(spec, annotations=named | {CRITICAL: "x", UNSAFE: "y"})
    noisy = {"env": [{"name": "A"}, {"name": "A"}], "resources": {"limits": {"memory": "0.5"}}}
    spec = {
        "containers": [CONTAINER | noisy],
        "initContainers": [{"name": "i", "image": "i"} | noisy],
        "hostAliases": [{"ip": "1.1.1.1"}] * 2,
        "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}],
        "nodeSelector": {"beta.kubernetes.io/arch": "x"},
        "imagePullSecrets": [{"name": "s"}] * 2,
    }
    yield from both(spec, annotations={name: named[name] for name in named if name[-1] != "d"})
    debugged = {"ephemeralContainers": [{"name": "e", "image": "i"}]}
    debugged |= {"containers": [CONTAINER | context]}
    yield from both(debugged, annotations={f"{APP_ARMOR}c": "x", f"{APP_ARMOR}e": "unconfined"})
    yield from both({}, annotations={MIRROR: "x", DELETION_COST: "x"})
    yield from both({}, annotations={f"{APP_ARMOR}z": "foo"})
    yield from both({}, annotations={"bad key!": "x"}, labels={"a": "b", "bad key!": "x"})


def changed_annotations() -> Iterator[Step]:
    kept = {"annotations": {f"{APP_ARMOR}c": "unconfined"}}
    yield Step("POST", PODS, pod("plain"))
    yield Step("POST", PODS, pod("armored", {"nodeName": "n"}, **kept))
    for change in each(
        {f"{APP_ARMOR}c": "unconfined"}, {f"{APP_ARMOR}c": "foo"}, {f"{APP_ARMOR}c": None}, {f"{APP_ARMOR}z": "unconfined"},
        {SECCOMP_OF_POD: "foo"}, {SECCOMP_OF_POD: "unconfined"}, {DELETION_COST: "x"}, {MIRROR: "x"}, {"bad key!": "x"},
        {f"{APP_ARMOR}c": "runtime/default"},
    ):  # fmt: skip
        for name in ("plain", "armored"):
            for part in ("", "/status", "/ephemeralcontainers", "/resize"):
                path = f"{PODS}/{name}{part}?dryRun=All"
                patch = {"metadata": {"annotations": change}}
                yield Step("PATCH", path, patch, MERGE if name == "plain" else STRATEGIC)


def all_steps() -> list[Step]:
    parts = (templates, owners, app_armor, seccomp, noted, changed_annotations)
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
