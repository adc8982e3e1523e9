"""Kubernetes' protobuf encoding.

`tables` has the messages, `schema` reads them, `reading` and `writing` generate a function for each message
that is used, for plain JSON values or for structs. `memory` keeps parts that come again, `stored_json` reads
stored objects no further than needed to write them. `envelope` has whole bodies and the events of watches.
"""
