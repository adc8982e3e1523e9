"""ValidatingAdmissionPolicies."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.kinds.admission_defaults import policy_defaults
from allot.apiserver.kinds.admission_strategy import admission_strategy, policy_row
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Column, Table, number
from allot.validation.admission_policies import validate_validating_policy

DEFINITION: Final = KindDefinition(
    strategy=admission_strategy(validate_validating_policy, has_status=True),
    defaults=policy_defaults,
    table=Table(
        (NAME, number("Validations"), Column("ParamKind"), AGE), partial(policy_row, "validations")
    ),
    subresources=(STATUS,),
)
