"""The API server. Imports point down this list.

running, assembly      a server with its store and socket; its parts put together
http                   connections, routes, negotiation, handlers of requests, discovery, OpenAPI
dynamic_admission      policies and webhooks that users register
registry               reads and writes of stored objects; the write pipeline
admission              plugins that change or reject writes
audit                  the audit log
auth                   authentication, authorization, credentials
watch_cache            all stored objects in memory, with their recent changes
kinds                  one module per kind: strategy, defaults, table columns; custom_resource for those users define
managed_fields         owners of fields: server-side apply
printers, defaults, schemas, selectors    what kinds are made of
"""
