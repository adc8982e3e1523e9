"""The KubeSchedulerConfiguration files of commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from allot.cli.errors import CommandError
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.scheduler.configuration import SchedulerConfiguration


def load_configuration(path: Path | None, rules: RuleSet | None = None) -> SchedulerConfiguration:
    """The configuration in a file, or the default; `CommandError` if it is invalid.

    `rules` is the command line's, which takes precedence over the file's.
    """
    from allot.scheduler.configuration import (
        ConfigurationError,
        SchedulerConfiguration,
        read_configuration,
    )

    if path is None:
        return SchedulerConfiguration(rules=rules)
    try:
        configuration = read_configuration(_document(path))
        return replace(configuration, rules=rules or configuration.rules)
    except ConfigurationError as error:
        raise CommandError(f"{path}: {error}") from error


def _document(path: Path) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{path}: {error}") from error
