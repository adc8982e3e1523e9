"""The kinds that the API server serves: one module per kind, named after it.

A kind is a row of `allot.api.kinds`. Its module has a `DEFINITION` with what is special about it: strategy, defaults,
table columns, subresources, selectable fields. A kind without special treatment needs no module.

definition     what a definition can say
strategy       the steps of a write that differ between kinds; `raw_strategy` for raw kinds
resources      the table of everything that can be served, made from rows and definitions
"""
