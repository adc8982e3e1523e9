"""Jobs with selectors and labels of their own, and what of them may change.

    python -m tests.conformance.job_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/jobs-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import MERGE
from tests.conformance.template_steps import APPS
from tests.conformance.wire_steps import (
    DEPLOYMENTS,
    IN_DEFAULT,
    STRATEGIC,
    Step,
    each,
    pod,
    print_answers,
    workload,
)

Document = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
POD: Document = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
UID = "batch.kubernetes.io/controller-uid"
NAME = "batch.kubernetes.io/job-name"
LABELS = {"a": "b"}
MATCHED = {"matchLabels": LABELS}


def job(spec: Document, labels: Document | None = None, **metadata: Any) -> Document:
    template = {"spec": POD} | ({} if labels is None else {"metadata": {"labels": labels}})
    return {"metadata": {"name": "j"} | metadata, "spec": {"template": template} | spec}


def selectors() -> Iterator[Step]:
    for manual in each(None, False, True):
        for selector in each(
            None, {}, {"matchLabels": {}}, MATCHED, {"matchLabels": {"a": "c"}}, {"matchLabels": {"a": "bad value!"}},
            {"matchExpressions": []}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchExpressions": [{}]},
            {"matchExpressions": [{"key": "a", "operator": "In"}]}, {"matchLabels": {UID: "x"}}, {"matchLabels": {"bad key!": "x"}},
            {"matchLabels": {"job-name": "j"}}, {"matchLabels": {NAME: "other"}}, {"matchExpressions": [{"key": NAME, "operator": "Exists"}]},
            {"matchExpressions": [{"key": "job-name", "operator": "In", "values": ["j"]}]},
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
        ):  # fmt: skip
            for labels in each(None, LABELS):
                spec = {"manualSelector": manual, "selector": selector}
                yield Step("POST", f"{JOBS}?dryRun=All", job(spec, labels))


def labels() -> Iterator[Step]:
    for manual in each(None, True):
        for change in each(
            {}, {UID: "x"}, {"controller-uid": "x"}, {NAME: "x"}, {"job-name": "x"}, {NAME: "j", "job-name": "j"}, {"bad key!": "x"},
            {UID: "x", NAME: "j", "job-name": "j", "controller-uid": "x"}, {"controller-uid": "x", UID: "x"},
        ):  # fmt: skip
            spec = {"manualSelector": manual, "selector": MATCHED} if manual else {}
            yield Step("POST", f"{JOBS}?dryRun=All", job(spec, LABELS | change))
    yield Step("POST", f"{JOBS}?dryRun=All", job({}, LABELS, name="x" * 64))
    manual_spec = {"manualSelector": True, "selector": MATCHED}
    yield Step("POST", f"{JOBS}?dryRun=All", job(manual_spec, LABELS, name="x" * 64))


def mistakes() -> Iterator[Step]:
    """Mistakes of the selector together with others."""
    bad_key = {"matchLabels": {"a!": "b"}}
    selecting: tuple[Document, ...] = (
        {}, {"selector": MATCHED}, {"selector": bad_key}, {"selector": {"matchExpressions": [{"key": "a!", "operator": "X"}]}},
        {"manualSelector": True}, {"manualSelector": True, "selector": MATCHED}, {"manualSelector": True, "selector": bad_key},
        {"manualSelector": True, "selector": {}},
    )  # fmt: skip
    negative = dict.fromkeys(
        ("ttlSecondsAfterFinished", "backoffLimit", "completions", "parallelism", "activeDeadlineSeconds"), -1
    )  # fmt: skip
    for selector in selecting:
        for spec in each(
            {"parallelism": -1}, {"parallelism": -1, "completions": -1}, negative, {"completionMode": "Indexed", "parallelism": -1},
            {"backoffLimitPerIndex": 1}, {"template": {"spec": {"containers": []}}}, {"template": None}, {"template": {}},
            {"template": {"metadata": {"labels": {"a!": "b"}}, "spec": {"containers": []}}, "backoffLimit": -1},
            {"template": {"metadata": {"labels": {"job-name": "x"}}, "spec": POD}, "parallelism": -1},
            {"template": {"metadata": {"labels": {UID: "x", "a!": "b"}, "annotations": {"b!": "c"}}, "spec": POD}, "parallelism": -1},
        ):  # fmt: skip
            yield Step("POST", f"{JOBS}?dryRun=All", job(selector | spec))
            yield Step(
                "POST", f"{JOBS}?dryRun=All", job(selector | spec, labels={"c!": "d"}, name="j")
            )
        yield Step("POST", f"{JOBS}?dryRun=All", job(selector | {"parallelism": -1}, name="J_"))
    yield Step("POST", f"{JOBS}?dryRun=All", {"metadata": {"name": "j"}})


def execution() -> Iterator[Step]:
    """How many pods run, and who manages the job."""
    indexed = {"completionMode": "Indexed", "completions": 5}
    many = {"completionMode": "Indexed", "completions": 200000, "backoffLimitPerIndex": 1}
    for spec in each(
        *({"completionMode": mode} for mode in ("", "Foo", "NonIndexed", "Indexed")),
        *({"podReplacementPolicy": policy} for policy in ("", "X", "Failed", "TerminatingOrFailed")),
        *({"managedBy": manager} for manager in (
            "", "a", "kubernetes.io/job-controller", "a.b/c d", "A_/c", "a.b/", "/a", "a/" + "x" * 61, "a/" + "x" * 62, "A_/" + "x" * 70)),
        {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {"rules": []}},
        {"backoffLimitPerIndex": -1}, {"maxFailedIndexes": -1}, {"maxFailedIndexes": 1}, {"completionMode": "Indexed", "parallelism": 2},
        indexed | {"backoffLimitPerIndex": -1}, indexed | {"maxFailedIndexes": 1}, indexed | {"parallelism": 100000},
        indexed | {"parallelism": 100001}, *(indexed | {"backoffLimitPerIndex": 1, "maxFailedIndexes": count} for count in (-1, 5, 6)),
        indexed | {"backoffLimitPerIndex": 1, "maxFailedIndexes": 200000, "parallelism": 200000},
        many, many | {"parallelism": 20000}, many | {"parallelism": 20000, "maxFailedIndexes": 200000},
        many | {"parallelism": 10000, "maxFailedIndexes": 10000}, many | {"parallelism": 200000, "maxFailedIndexes": 300000},
        {"completionMode": "Foo", "backoffLimitPerIndex": -1, "managedBy": "a", "podReplacementPolicy": "X", "maxFailedIndexes": -1},
        {"completionMode": "Indexed", "parallelism": -1, "backoffLimitPerIndex": -1, "maxFailedIndexes": -1, "managedBy": "a",
            "podReplacementPolicy": "X", "activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -1, "backoffLimit": -1},
    ):  # fmt: skip
        yield Step("POST", f"{JOBS}?dryRun=All", job(spec))
        cron_job = {"schedule": "* * * * *", "jobTemplate": {"spec": job(spec)["spec"]}}
        yield Step("POST", f"{CRON_JOBS}?dryRun=All", {"metadata": {"name": "c"}, "spec": cron_job})


def changes() -> Iterator[Step]:
    for name, spec in each(
        ("own", {"manualSelector": True, "selector": MATCHED}),
        ("made", {}),
        ("paused", {"suspend": True}),
    ):
        yield Step("POST", JOBS, job(spec, LABELS, name=name))
        yield Step("GET", f"{JOBS}/{name}")
        for change in each(
            {"manualSelector": True}, {"manualSelector": False}, {"manualSelector": None}, {"selector": None},
            {"selector": {"matchLabels": {"a": "c"}}}, {"selector": {"matchLabels": {"c": "d"}}},
            {"template": {"metadata": {"labels": {"a": "c"}}}}, {"template": {"metadata": {"labels": {"c": "d"}}}},
            {"template": {"metadata": {"annotations": {"c": "d"}}}}, {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
            {"parallelism": 2}, {"completions": 2}, {"completions": None}, {"completionMode": "Indexed"}, {"suspend": True},
            {"suspend": False}, {"backoffLimit": 3}, {"activeDeadlineSeconds": 5}, {"ttlSecondsAfterFinished": 5},
            {"podReplacementPolicy": "Failed"}, {"managedBy": "e.com/x"}, {"backoffLimitPerIndex": 1},
            {"template": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}},
            {"template": {"spec": {"schedulingGates": [{"name": "g"}]}}},
        ):  # fmt: skip
            for kind in (MERGE, STRATEGIC):
                yield Step("PATCH", f"{JOBS}/{name}?dryRun=All", {"spec": change}, kind)
        yield Step("PUT", f"{JOBS}/{name}?dryRun=All", job(spec, LABELS, name=name))
        yield Step("DELETE", f"{JOBS}/{name}?propagationPolicy=Background")


def cron_jobs() -> Iterator[Step]:
    for manual in each(None, False, True):
        for selector in each(None, {}, MATCHED):
            spec = job({"manualSelector": manual, "selector": selector}, LABELS)["spec"]
            body = {
                "metadata": {"name": "c"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": spec}},
            }
            yield Step("POST", f"{CRON_JOBS}?dryRun=All", body)


def names() -> Iterator[Step]:
    """Names that are no DNS labels are warned about."""
    long = "x" * 64
    pods = pod("x")["spec"]
    for name in ("a.b", long, f"a.{long}"):
        yield Step(
            "POST", f"{IN_DEFAULT}/pods?dryRun=All", {"metadata": {"name": name}, "spec": pods}
        )
        manual = {"manualSelector": True, "selector": MATCHED}
        yield Step("POST", f"{JOBS}?dryRun=All", job(manual, LABELS, name=name))
        for kind in ("deployments", "replicasets", "daemonsets"):
            yield Step("POST", f"{APPS}/{kind}?dryRun=All", workload(name))
    cron_job = {"schedule": "* * * * *", "jobTemplate": {"spec": job({})["spec"]}}
    yield Step("POST", f"{CRON_JOBS}?dryRun=All", {"metadata": {"name": "a.b"}, "spec": cron_job})
    yield Step("POST", DEPLOYMENTS, workload("a.b"))
    yield Step("PUT", f"{DEPLOYMENTS}/a.b?dryRun=All", workload("a.b"))
    yield Step("DELETE", f"{DEPLOYMENTS}/a.b")


def all_steps() -> list[Step]:
    parts = (selectors, labels, changes, cron_jobs, names, mistakes, execution)
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
