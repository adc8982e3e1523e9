"""Errors of commands: one line and a documented exit code."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from allot.storage.interface import StorageError

EXIT_OK: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

EXIT_CODES: Final = """\
Exit codes: 0 all is well; 1 the command worked and found something wrong with what it was given;
2 it could not be run that way (bad option, missing or unreadable file); 130 interrupted."""


class CommandError(Exception):
    """The command cannot be run this way. The message is one line for the user."""

    exit_code: int = EXIT_USAGE


class DamageError(CommandError):
    """The input of the command is damaged."""

    exit_code = EXIT_FINDINGS


def storage_error(error: StorageError) -> CommandError:
    """The error for a store that cannot be used."""
    from allot.storage.interface import DamagedStoreError

    return (
        DamageError(str(error))
        if isinstance(error, DamagedStoreError)
        else CommandError(str(error))
    )


def address_error(error: Exception) -> CommandError:
    """The error for an address where the server cannot listen."""
    message = str(error)
    if os.strerror(errno.EADDRINUSE) in message:
        message += "; --port 0 takes a free port"
    return CommandError(message)
