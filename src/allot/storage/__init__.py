"""Versioned keys and bytes: in memory, in SQLite, in etcd.

`interface.py` says what a store promises; the contract suite in `tests/contract` holds every store
to it. What the bytes mean is none of this package's business.
"""
