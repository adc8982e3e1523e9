"""The scenarios of Kubernetes v1.38 that end otherwise under the rules of the KEPs, by the rule."""

from __future__ import annotations

from allot.rules import KEP_FIELDS_IN_V1ALPHA3, ONE_KIND_OF_BINDING_CONDITIONS

OTHERWISE_BY_RULE = {
    ONE_KIND_OF_BINDING_CONDITIONS: ("bind-validation",),
    KEP_FIELDS_IN_V1ALPHA3: ("kubectl-api-resources",),
}
