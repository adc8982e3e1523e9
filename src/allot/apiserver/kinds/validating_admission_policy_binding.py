"""ValidatingAdmissionPolicyBindings."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.kinds.admission_defaults import binding_defaults
from allot.apiserver.kinds.admission_strategy import binding_row
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Column, Table
from allot.validation.admission_policies import validate_validating_binding

DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(validate=validate_validating_binding, generation=COUNTED)
    ),
    defaults=binding_defaults,
    table=Table((NAME, Column("PolicyName"), Column("ParamRef"), AGE), binding_row),
)
