"""Placeholders: `${NAME}` in any text of a scenario, keys included."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.acceptance.runner.paths import Json

PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def fill_in(value: Json, variables: Mapping[str, Json]) -> Json:
    """The value with known placeholders replaced; unknown ones stay.

    A string that is one placeholder and nothing else becomes the variable's value, whatever its type.
    """
    match value:
        case str():
            whole = PLACEHOLDER.fullmatch(value)
            if whole and whole[1] in variables:
                return variables[whole[1]]
            return PLACEHOLDER.sub(lambda name: str(variables.get(name[1], name[0])), value)
        case dict():
            return {fill_in(k, variables): fill_in(v, variables) for k, v in value.items()}
        case list():
            return [fill_in(element, variables) for element in value]
        case _:
            return value
