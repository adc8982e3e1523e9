"""Lint: what is wrong with manifests, before they are applied.

    files → `manifests` → `subjects` ──┬→ `server`: the API server's answers        ┐
    cluster ───────→ `known_objects` ──┴→ `rules/`: what is accepted but cannot work ├→ `linter` → findings
                                          `target`: what another cluster decides     ┘

A rule is a function of one object and all that is known; `rule_table` has every rule's id, severity
and help. `text_edits` applies the fixes that rules propose. `sarif` writes findings for code hosts.
"""
