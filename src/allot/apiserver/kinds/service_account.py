"""ServiceAccounts."""

from __future__ import annotations

from typing import Final

from allot.apiserver.kinds.definition import TOKEN, KindDefinition

DEFINITION: Final = KindDefinition(
    subresources=(TOKEN,),
    returns_deleted_in=("v1",),
)
