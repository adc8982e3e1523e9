"""CronJobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change_at, fill, make
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.ages import time_at
from allot.apiserver.printers.column import (
    AGE,
    NAME,
    NONE,
    TEMPLATE,
    UNSET,
    Age,
    Cell,
    Column,
    Table,
    flag,
    number,
    wide,
)
from allot.apiserver.printers.words import or_none, selector_cell, template_cells
from allot.validation import jobs
from allot.validation.core_names import cron_job_name_problems
from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.pod_warnings import IN_POD_NAMES, template_warnings


def cron_job_defaults(cron_job: Data) -> Data:
    """The jobs it makes get their own defaults when they are made."""
    cron_job = make(
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
    cron_job = change_at(
        cron_job,
        ("spec", "jobTemplate"),
        lambda job: job if "metadata" in job else {"metadata": {}} | job,
    )
    return change_at(cron_job, ("spec", "jobTemplate", "spec"), template_defaults)


def _cron_job_row(cron_job: RawObject, age: Age) -> list[Cell]:
    last = time_at(cron_job, "status", "lastScheduleTime")
    job: Mapping[str, Any] = cron_job.get("spec", "jobTemplate", "spec", default={})
    return [
        cron_job.metadata.name,
        str(cron_job.get("spec", "schedule", default="")),
        or_none(cron_job.get("spec", "timeZone")),
        _yes_or_no(cron_job.get("spec", "suspend")),
        len(cron_job.get("status", "active", default=[])),
        age(last) if last is not None else NONE,
        age(cron_job.metadata.creation_timestamp),
        *template_cells(job.get("template") or {}),
        selector_cell(job.get("selector")),
    ]


LOCAL: Final = "Local"
"""What Go calls the time zone of the machine."""


def _validate(cron_job: RawObject) -> Iterator[FieldError]:
    yield from jobs.validate_cron_job(cron_job)
    zone = cron_job.get("spec", "timeZone")
    if zone is not None:
        yield from _validate_time_zone(str(zone))


def _validate_time_zone(zone: str) -> Iterator[FieldError]:
    """Here and not in `allot.validation`, because time zones are read from files."""
    path = FieldPath("spec") / "timeZone"
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == LOCAL.lower():
        yield invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        )
    if zone != LOCAL:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            yield invalid(path, zone, f"unknown time zone {zone}")


def _yes_or_no(value: object) -> str:
    return UNSET if value is None else str(bool(value))


def _template_warnings(cron_job: RawObject) -> list[str]:
    return template_warnings(cron_job, ("spec", "jobTemplate", "spec", "template"))


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            cron_job_name_problems,
            _validate,
            status={},
            generation=COUNTED,
            warnings=_template_warnings,
            name_is_used_in=IN_POD_NAMES,
        ),
    ),
    defaults=cron_job_defaults,
    table=Table(
        (
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            flag("Suspend"),
            number("Active"),
            Column("Last Schedule"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _cron_job_row,
    ),
    subresources=(STATUS,),
)
