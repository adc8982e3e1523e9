"""Roles."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.words import CREATED
from allot.validation import rbac
from allot.validation.core_names import path_segment_problems

DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(path_segment_problems, rbac.validate_role)),
    table=CREATED,
    is_created_by_update=True,
)
