"""PodTemplates."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import Generation, KindRules, RawStrategy
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import labels_text, template_cells
from allot.validation import workloads
from allot.validation.pod_warnings import template_warnings


def _template_row(template: RawObject, _: Age) -> list[Cell]:
    part = template.get("template", default={})
    labels = (part.get("metadata") or {}).get("labels")
    return [template.metadata.name, *template_cells(part), labels_text(labels)]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            warnings=lambda template: template_warnings(template, ("template",)),
            validate=workloads.validate_pod_template,
            generation=Generation((("template",),)),
        ),
    ),
    defaults=template_defaults,
    table=Table(
        (NAME, Column("Containers"), Column("Images"), Column("Pod Labels")), _template_row
    ),
    returns_deleted_in=("v1",),
)
