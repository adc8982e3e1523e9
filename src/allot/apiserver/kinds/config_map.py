"""ConfigMaps."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.validation import config_data


def _config_map_row(config_map: RawObject, age: Age) -> list[Cell]:
    entries = sum(len(config_map.get(field, default={})) for field in ("data", "binaryData"))
    return [config_map.metadata.name, entries, age(config_map.metadata.creation_timestamp)]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=config_data.validate_config_map,
            validate_change=config_data.validate_config_map_update,
        ),
    ),
    table=Table((NAME, Column("Data"), AGE), _config_map_row),
)
