"""Namespaces that are deleted take everything in them along.

conditions.py   what the namespace's status says about it
controller.py   deletes the contents, reports, and lets the namespace go when it is empty
"""

from __future__ import annotations

from allot.controllers.namespaces.controller import NamespaceController

__all__ = ["NamespaceController"]
