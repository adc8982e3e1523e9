"""MutatingAdmissionPolicies."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.kinds.admission_defaults import policy_defaults
from allot.apiserver.kinds.admission_strategy import admission_strategy, policy_row
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Column, Table, number
from allot.validation.admission_policies import validate_mutating_policy

DEFINITION: Final = KindDefinition(
    strategy=admission_strategy(validate_mutating_policy),
    defaults=policy_defaults,
    table=Table(
        (NAME, number("Mutations"), Column("ParamKind"), AGE), partial(policy_row, "mutations")
    ),
)
