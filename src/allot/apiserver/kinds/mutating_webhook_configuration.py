"""MutatingWebhookConfigurations."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.kinds.admission_defaults import webhook_defaults
from allot.apiserver.kinds.admission_strategy import WEBHOOKS, admission_strategy, webhooks_row
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Table, number
from allot.validation.webhook_configurations import validate_webhooks

DEFINITION: Final = KindDefinition(
    strategy=admission_strategy(validate_webhooks, WEBHOOKS, needs_resource_version=True),
    defaults=partial(webhook_defaults, reinvocationPolicy="Never"),
    table=Table((NAME, number("Webhooks"), AGE), webhooks_row),
)
