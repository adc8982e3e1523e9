"""Secrets."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, fill, part, without
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, number
from allot.apiserver.printers.words import text_at
from allot.validation import config_data


def secret_defaults(secret: Data) -> Data:
    """`stringData` is write-only: its values are encoded into `data`."""
    secret = fill(secret, type="Opaque")
    if "stringData" not in secret:
        return secret
    strings = part(secret, "stringData")
    encoded = {name: b64encode(str(value).encode()).decode() for name, value in strings.items()}
    rest = without(secret, "stringData")
    return rest | {"data": part(secret, "data") | encoded} if encoded else rest


def _secret_row(secret: RawObject, age: Age) -> list[Cell]:
    metadata = secret.metadata
    entries = len(secret.get("data", default={}))
    return [metadata.name, text_at(secret, "type"), entries, age(metadata.creation_timestamp)]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=config_data.validate_secret, validate_change=config_data.validate_secret_update
        ),
    ),
    defaults=secret_defaults,
    table=Table((NAME, Column("Type"), number("Data"), AGE), _secret_row),
    selectable_fields={"type": "type"},
)
