"""The pods of a job: with the tracking finalizer, and for indexed jobs with label, annotation, hostname and variable."""

from __future__ import annotations

from typing import Final

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.resources import JOBS
from allot.controllers.workloads.accessors import Json, name_of, template_of
from allot.controllers.workloads.job.failures import INDEX_FAILURE_COUNT, failures_before
from allot.controllers.workloads.job.indexes import COMPLETION_INDEX
from allot.controllers.workloads.job.spec import JobSpec
from allot.controllers.workloads.job.tally import TRACKING
from allot.controllers.workloads.names import MAX_NAME_LENGTH
from allot.controllers.workloads.pod_templates import (
    pod_from_template,
    with_finalizer,
    with_metadata_entries,
)

INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


def name_base(job: RawObject, index: int | None) -> str:
    """The prefix of its pods' names."""
    return f"{name_of(job)}-" if index is None else f"{name_of(job)}-{index}-"


def make_pod(job: RawObject, spec: JobSpec, index: int | None, last_failed: Pod | None) -> Pod:
    """A pod of a job or of one of its indexes. `last_failed` is the previous pod of the index."""
    pod = with_finalizer(pod_from_template(template_of(job), JOBS, job), TRACKING)
    if index is None:
        return pod
    entry = {COMPLETION_INDEX: str(index)}
    pod = with_metadata_entries(pod, "annotations", entry)
    pod = with_metadata_entries(pod, "labels", entry)
    if spec.is_per_index:
        failures = failures_before(last_failed) + 1 if last_failed is not None else 0
        pod = with_metadata_entries(pod, "annotations", {INDEX_FAILURE_COUNT: str(failures)})
    if not pod.get("spec", "hostname"):
        pod = pod.with_value(_hostname(job, index), "spec", "hostname")
    for field in ("containers", "initContainers"):
        containers = pod.get("spec", field)
        if containers:
            pod = pod.with_value([_with_index(each) for each in containers], "spec", field)
    return pod


def _hostname(job: RawObject, index: int) -> str:
    end = f"-{index}"
    return name_of(job)[: MAX_NAME_LENGTH - len(end)].rstrip("-.") + end


def _with_index(container: Json) -> Json:
    """The container with the index in its environment, unless the variable is set already."""
    variables = container.get("env") or []
    if any(variable.get("name") == INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}
