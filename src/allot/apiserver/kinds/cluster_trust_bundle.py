"""ClusterTrustBundles."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import or_none, text_at
from allot.validation.certificates import trust_bundle_name_problems, validate_trust_bundle


def _bundle_row(bundle: RawObject, _: Age) -> list[Cell]:
    return [bundle.metadata.name, or_none(text_at(bundle, "spec", "signerName"))]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(name_problems=trust_bundle_name_problems, validate=validate_trust_bundle),
    ),
    table=Table((NAME, Column("SignerName")), _bundle_row),
    selectable_fields={"spec.signerName": "spec.signerName"},
    without_effect="simulated pods mount no volumes",
)
