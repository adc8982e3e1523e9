"""Answers that take long: computed in a forked child with a deadline, so that the page stays alive meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from allot.api.decoding import to_builtin
from allot.scheduler.core.forked import ChildFailedError, in_child

MAX_CHILDREN: Final = 2
_ERROR: Final = b"!"
_ANSWER: Final = b"="


class AnswerError(Exception):
    """The question cannot be answered; the text is for the user."""


class Children:
    """Runs work in children, a few at a time."""

    def __init__(self) -> None:
        self._limit = asyncio.Semaphore(MAX_CHILDREN)

    async def answer(self, work: Callable[[], Any], seconds: float) -> bytes:
        """What `work` returns, as JSON. `AnswerError` if it raises one, or needs more than `seconds`."""
        async with self._limit:
            try:
                found = await in_child(lambda: _encoded(work), seconds)
            except ChildFailedError as error:
                raise AnswerError(f"no answer: {error}") from None
        if found[:1] == _ERROR:
            raise AnswerError(found[1:].decode())
        return found[1:]


def _encoded(work: Callable[[], Any]) -> bytes:
    try:
        return _ANSWER + encode(work())
    except AnswerError as error:
        return _ERROR + str(error).encode()


def encode(value: Any) -> bytes:
    """JSON as the commands print it."""
    return msgspec.json.encode(value, enc_hook=to_builtin)
