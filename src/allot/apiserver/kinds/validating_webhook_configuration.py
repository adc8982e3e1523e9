"""ValidatingWebhookConfigurations."""

from __future__ import annotations

from typing import Final

from allot.apiserver.kinds.admission_defaults import webhook_defaults
from allot.apiserver.kinds.admission_strategy import WEBHOOKS, admission_strategy, webhooks_row
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Table, number
from allot.validation.webhook_configurations import validate_webhooks

DEFINITION: Final = KindDefinition(
    strategy=admission_strategy(validate_webhooks, WEBHOOKS, needs_resource_version=True),
    defaults=webhook_defaults,
    table=Table((NAME, number("Webhooks"), AGE), webhooks_row),
)
