"""Versioned keys and bytes: in memory, in SQLite, in etcd.

`interface.py` defines the guarantees of a store; the contract suite in `tests/contract` checks them for every store.
This package does not interpret the bytes.
"""
