"""What every type of the API looks like: its fields, what they hold, how lists in them are merged.

`types` answers for a kind or a type name, `strictness` judges documents of raw kinds by it.
"""
