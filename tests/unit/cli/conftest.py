"""What holds for all tests of commands."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Commands set up logging for their process; here they share it with other tests."""
    loggers = logging.getLogger(), logging.getLogger("allot")
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
