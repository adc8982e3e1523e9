"""Deletes the contents of terminating namespaces.

conditions.py   the conditions in the status of a terminating namespace
controller.py   deletes the contents, writes the status, and finalizes the namespace when it is empty
"""

from __future__ import annotations

from allot.controllers.namespaces.controller import NamespaceController

__all__ = ["NamespaceController"]
